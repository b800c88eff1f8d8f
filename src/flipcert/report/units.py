"""What a radius counts, in words: every sentence, axis and column about a threat takes its words from here."""

from __future__ import annotations

from dataclasses import dataclass

from flipcert.labels.threats import DELETIONS, EDITS, FLIPS, INSERTIONS, REPLACEMENTS, SOURCES


@dataclass(frozen=True)
class Unit:
    """The words of one threat. In phrases, ``{labels}`` stands for what an attacker can choose from.

    Attributes
    ----------
    threat : str
        Whose words these are.
    noun : str
        One of what is counted, as in "withstands 12 flips".
    made : str
        The same where nothing around it says what it is about, as in "12 flipped labels".
    thing : str
        What an attacker chooses from: labels, sources or rows.
    bounded : bool
        Whether there is a largest attack. There are always more rows to add: the largest radius then reads "or more".
    spares_trusted : bool
        Whether trust limits what can be chosen. A source is one whether some of its labels are trusted or not, and rows
        can be added whichever are trusted.
    everything : str
        What is withstood where no attack of any size changes a prediction.
    nothing_possible : str
        What holds where all labels are trusted.
    can : str
        What can be done to a label, a source or a row: "flipped".
    choice : str
        What an attacker chooses, as the end of a sentence.
    idle : str
        That no attack changes any of some predictions.
    none_of_any_size : str
        The subject of "change 5 predictions", where no attack does.
    picked : str
        That it does not matter which of them an attacker takes, as the start of a sentence.
    listed : str
        What the parts of an attack on a page have in common.
    proven : str
        What is proven, in full.
    aimed : str
        That attacks are on one point at a time.
    covered : str
        What an attacker may do, and what is not covered.
    poisoned : str
        What nothing may have been tuned on: "labels that an attacker may flip".
    """

    threat: str
    noun: str
    made: str
    thing: str
    bounded: bool
    spares_trusted: bool
    everything: str
    nothing_possible: str
    can: str
    choice: str
    idle: str
    none_of_any_size: str
    picked: str
    listed: str
    proven: str
    aimed: str
    covered: str
    poisoned: str

    @property
    def nouns(self) -> str:
        """Several of what is counted."""
        return f"{self.noun}s"

    @property
    def all_made(self) -> str:
        """Several of them, where nothing else says what they are."""
        return f"{self.made}s"

    @property
    def a_noun(self) -> str:
        """One of them, with its article."""
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"

    @property
    def one_of(self) -> str:
        """What one attack in a comparison of models is on: one label in a hundred."""
        told = {
            FLIPS.name: "one in a hundred of the labels that can be flipped, and at least one, is flipped",
            SOURCES.name: "one in a hundred of the sources, and at least one, is corrupt",
            DELETIONS.name: "one in a hundred of the rows that can be deleted, and at least one, is deleted",
            INSERTIONS.name: "one row is added for every hundred, and at least one",
            REPLACEMENTS.name: "one in a hundred of the rows that can be replaced, and at least one, is replaced",
        }
        return told.get(self.threat, f"one {self.noun} is made for every hundred rows, and at least one")


_FLIPS = Unit(
    threat=FLIPS.name,
    noun="flip",
    made="flipped label",
    thing="label",
    bounded=True,
    spares_trusted=True,
    everything="any flips",
    nothing_possible="No label can be flipped",
    can="flipped",
    choice="whichever {labels} an attacker flips",
    idle="Nothing an attacker flips changes any of them.",
    none_of_any_size="No flips at all",
    picked="Whichever {labels} an attacker picks, and to whichever of the classes",
    listed="Training labels that are listed belong to a known attack: flipping all of them changes the prediction.",
    proven="A prediction that withstands r flips stays the same whichever r or fewer training {labels} are changed, to "
    "whichever classes.",
    aimed="the attacker may aim all flips at it alone. One set of flips need not break all of the points that fall at "
    "that number, so an attack on many points at once takes at least as many flips, and usually more.",
    covered="Attackers may change {labels}, and nothing else. Features, and which rows there are, are trusted; so is "
    "everything made from features alone. Poisoned inputs, added or removed rows are not covered.",
    poisoned="labels that an attacker may flip",
)
_SOURCES = Unit(
    threat=SOURCES.name,
    noun="corrupt source",
    made="corrupt source",
    thing="source",
    bounded=True,
    spares_trusted=False,
    everything="any labels",
    nothing_possible="No source can change a label",
    can="changed",
    choice="whichever sources an attacker controls",
    idle="Nothing that the sources do changes any of them.",
    none_of_any_size="Not even all sources together",
    picked="Whichever sources these are, and whatever they label",
    listed="Sources that are listed belong to a known attack: together they can change the prediction, by the labels "
    "that they give.",
    proven="A prediction that withstands r corrupt sources stays the same whichever r or fewer sources change their "
    "labels, all of them or some, to whichever classes, and whatever they agree upon.",
    aimed="the sources may aim all of their labels at it alone. One set of sources need not break all of the points "
    "that fall at that number, so an attack on many points at once takes at least as many sources, and usually more.",
    covered="Sources may change the labels that they gave, and nothing else. Who gave which label, how many labels "
    "each gave, features, and which rows there are, are trusted. Poisoned inputs, added or removed rows are not "
    "covered.",
    poisoned="labels that a corrupt source may change",
)
_DELETIONS = Unit(
    threat=DELETIONS.name,
    noun="deleted row",
    made="deleted row",
    thing="row",
    bounded=True,
    spares_trusted=True,
    everything="any deletions",
    nothing_possible="No row can be deleted",
    can="deleted",
    choice="whichever {labels} an attacker deletes",
    idle="Nothing an attacker deletes changes any of them.",
    none_of_any_size="No deletions at all",
    picked="Whichever {labels} an attacker picks",
    listed="Training rows that are listed belong to a known attack: deleting all of them changes the prediction.",
    proven="A prediction that withstands r deleted rows stays the same whichever r or fewer training {labels} are left "
    "out, and the model is fitted on the others with the same settings.",
    aimed="the attacker may aim all deletions at it alone. One set of deletions need not break all of the points that "
    "fall at that number, so an attack on many points at once takes at least as many, and usually more.",
    covered="Attackers may delete {labels}, and nothing else. The rows that stay keep their features and labels. "
    "Flipped labels, poisoned inputs and added rows are not covered.",
    poisoned="rows that an attacker may delete",
)
_INSERTIONS = Unit(
    threat=INSERTIONS.name,
    noun="added row",
    made="added row",
    thing="row",
    bounded=False,
    spares_trusted=False,
    everything="added rows",
    nothing_possible="No row can be added",
    can="added",
    choice="whichever rows an attacker adds",
    idle="All of them withstand as many added rows as the training set has, or more.",
    none_of_any_size="No added rows",
    picked="Whichever inputs and labels these rows have",
    listed="Rows that are listed belong to a known attack: adding all of them changes the prediction.",
    proven="A prediction that withstands r added rows stays the same whichever r or fewer rows are added, with "
    "whichever inputs (within the largest norm, where one was given) and labels, and the model is fitted with the same "
    "settings.",
    aimed="the attacker may aim all added rows at it alone. One set of rows need not break all of the points that fall "
    "at that number, so an attack on many points at once takes at least as many, and usually more.",
    covered="Attackers may add rows, and nothing else. The rows that are there keep their features and labels. Flipped "
    "labels and deleted rows are not covered.",
    poisoned="rows that an attacker may have added",
)
_REPLACEMENTS = Unit(
    threat=REPLACEMENTS.name,
    noun="replaced row",
    made="replaced row",
    thing="row",
    bounded=True,
    spares_trusted=True,
    everything="any replacements",
    nothing_possible="No row can be replaced",
    can="replaced",
    choice="whichever {labels} an attacker replaces",
    idle="Nothing an attacker puts in place of the rows changes any of them.",
    none_of_any_size="No replacements at all",
    picked="Whichever {labels} an attacker picks, and whichever inputs and labels come instead",
    listed="Training rows that are listed belong to a known attack: replacing all of them changes the prediction.",
    proven="A prediction that withstands r replaced rows stays the same whichever r or fewer training {labels} give "
    "way to others, with whichever inputs (within the largest norm, where one was given) and labels.",
    aimed="the attacker may aim all replacements at it alone. One set of rows need not break all of the points that "
    "fall at that number, so an attack on many points at once takes at least as many, and usually more.",
    covered="Attackers may put other rows in place of {labels}; a flipped label is one such replacement. The number of "
    "rows stays. Attacks that add or delete rows beside that are not covered.",
    poisoned="rows that an attacker may replace",
)
_EDITS = Unit(
    threat=EDITS.name,
    noun="edit",
    made="edit",
    thing="row",
    bounded=False,
    spares_trusted=False,
    everything="edits",
    nothing_possible="No edit can be made",
    can="edited",
    choice="whatever an attacker flips, deletes and adds",
    idle="All of them withstand as many edits as the training set has rows, or more.",
    none_of_any_size="No edits",
    picked="Whichever labels are flipped, and whichever rows are deleted and added",
    listed="Edits that are listed belong to a known attack: all of them together change the prediction.",
    proven="A prediction that withstands r edits stays the same whichever r or fewer of them are made. An edit flips "
    "one label, deletes one row, or adds one, with whichever input (within the largest norm, where one was given) and "
    "label.",
    aimed="the attacker may aim all edits at it alone. One set of edits need not break all of the points that fall at "
    "that number, so an attack on many points at once takes at least as many, and usually more.",
    covered="Attackers may flip labels, delete rows and add rows; what replaces a row counts as two edits. Inputs of "
    "rows that stay are trusted.",
    poisoned="rows that an attacker may edit",
)
_UNITS = {unit.threat: unit for unit in (_FLIPS, _SOURCES, _DELETIONS, _INSERTIONS, _REPLACEMENTS, _EDITS)}


def unit_of(threat: str) -> Unit:
    """The words of a threat; plain ones, made of its name, if it has none of its own."""
    return _UNITS[threat] if threat in _UNITS else _plain_words(threat)


def _plain_words(threat: str) -> Unit:
    return Unit(
        threat=threat,
        noun=threat.removesuffix("s"),
        made=threat.removesuffix("s"),
        thing="row",
        bounded=False,
        spares_trusted=False,
        everything=threat,
        nothing_possible=f"No {threat} are possible",
        can="changed",
        choice=f"whichever {threat} an attacker chooses",
        idle=f"All of them withstand as many {threat} as the training set has rows, or more.",
        none_of_any_size=f"No {threat}",
        picked=f"Whichever {threat} an attacker chooses",
        listed=f"What is listed belongs to a known attack: all of these {threat} together change the prediction.",
        proven=f"A prediction that withstands r {threat} stays the same whichever r or fewer of them are made.",
        aimed=f"the attacker may aim all {threat} at it alone.",
        covered=f"Attackers may make {threat}, and nothing else.",
        poisoned="data that an attacker may change",
    )
