"""Acting on alerts in the console: who may, what is recorded, and what a foreign page cannot do."""

from pathlib import Path
from typing import Any

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform_tests.support.acting_console import ALERT, PAGE, acting_console
from sda_platform_tests.support.delta_tables import commit
from sda_platform_tests.support.hostile import HOSTILE


def test_who_is_on_this_machine_acknowledges_assigns_and_comments_under_a_name(tmp_path: Path) -> None:
    with acting_console(tmp_path) as desk:
        assert "Acknowledge revision 2" in desk.text() and "desk@nasa.example" in desk.text()
        answer = desk.act(by="ann", comment="seen")
        assert (answer.status_code, answer.headers["location"]) == (303, "an-event")
        assert desk.act(action="assign", by="ann", assigned_to="bob", comment="my shift ends").status_code == 303
        assert desk.act(action="comment", by="bob", comment="called\r\nthe operator").status_code == 303
        assert sorted(desk.actions) == [
            ("ann", "acknowledge", 2, "seen", ""),
            ("ann", "assign", 2, "my shift ends", "bob"),
            ("bob", "comment", 2, "called\nthe operator", ""),
        ]
        page = desk.text()
        for words in ("Hand-over log", "acknowledged revision 2", "assigned to bob", "my shift ends", "called"):
            assert words in page
        table = desk.text(path="/")
        assert "→ bob" in table and ">ann<" in table


def test_what_a_person_writes_is_text_or_refused(tmp_path: Path) -> None:
    with acting_console(tmp_path) as desk:
        for text in HOSTILE.values():
            desk.act(by=text, comment=text)
            desk.act(action="assign", by="ann", assigned_to=text)
            desk.act(action="comment", by="ann", comment=text)
        assert len(desk.actions) > len(HOSTILE)
        for path in (PAGE, "/"):
            page = desk.text(path=path)
            assert not [each for each in ("<script>alert", "<img src=//", "<http", "\x1b", "\u202e") if each in page]


def test_a_login_is_asked_for_and_the_role_decides_and_the_name_is_that_of_the_user(tmp_path: Path) -> None:
    with acting_console(tmp_path, has_users=True) as desk:
        assert "Log in" in desk.text() and "<form" not in desk.text() and "nasa.example" not in desk.text()
        assert "nasa.example" not in desk.text(path="/objects/25544")
        for user, status in (("", 401), ("operator-x", 401), ("viewer-v", 403), ("operator-o", 303), ("admin-a", 303)):
            answer = desk.act(user, by="somebody else")
            assert answer.status_code == status, user
            assert (status == 401) == ("www-authenticate" in answer.headers)
        assert [each[0] for each in desk.actions] == ["admin-a", "operator-o"]
        assert "nasa.example" not in desk.text("viewer-v") and "<form" not in desk.text("viewer-v")
        assert "You are operator-o." in desk.text("operator-o") and "nasa.example" in desk.text("operator-o")
        assert "nasa.example" in desk.text("operator-o", "/objects/25544")


def test_a_login_leads_back_to_the_page_and_nowhere_else(tmp_path: Path) -> None:
    with acting_console(tmp_path, has_users=True) as desk:
        assert desk.client.get("/login").status_code == 401
        for to, place in (("conjunctions/an-event", "./conjunctions/an-event"), ("//evil.example", "./"),
                          ("https://evil.example", "./"), ("conjunctions/../x", "./"), ("conjunctions/a\r\nb", "./"),
                          ("conjunctions/\\evil", "./")):  # fmt: skip
            answer = desk.client.get("/login", params={"to": to}, headers=desk.login("viewer-v"))
            assert (answer.status_code, answer.headers["location"]) == (303, place)


def test_beyond_loopback_nobody_acts_without_users(tmp_path: Path) -> None:
    with acting_console(tmp_path, is_open=False) as desk:
        assert "<form" not in desk.text() and "nasa.example" not in desk.text() and "sda alert ack" in desk.text()
        answer = desk.act(by="ann")
        assert answer.status_code == 403 and "SDA_WEBSERVER_USERS" in answer.text
        assert desk.actions == []


def test_a_page_of_others_cannot_act_even_with_the_login_of_a_person(tmp_path: Path) -> None:
    with acting_console(tmp_path, has_users=True) as desk:
        for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"},
                        {"sec-fetch-site": "same-site"}, {"host": "evil.example"}):  # fmt: skip
            assert desk.act("operator-o", headers).status_code == 403, headers
        assert desk.actions == []
        assert desk.act("operator-o", {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}).is_redirect


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a later revision": ({"revision": "3"}, "&#x27;3&#x27; is no revision"),
    "a negative one": ({"revision": "-1"}, "is no revision"),
    "a long one": ({"revision": "9" * 5000}, "is no revision"),
    "a digit that is none": ({"revision": "²"}, "is no revision"),
    "another action": ({"action": "delete"}, "action is"),
    "no name": ({"by": ""}, "the name is empty"),
    "a long name": ({"by": "x" * 101}, "is no name"),
    "a long comment": ({"comment": "x" * 4097}, "comment has 4097 characters"),
    "no comment": ({"action": "comment"}, "a comment is empty"),
    "another field": ({"other": "x"}, "field"),
    "a long body": ({"comment": "x" * 100_000}, "the form was not taken: the body is larger than 53,248 bytes"),
}


def test_a_form_that_cannot_be_used_is_refused_with_the_reason(tmp_path: Path) -> None:
    with acting_console(tmp_path) as desk:
        for name, (fields, reason) in WRONG.items():
            answer = desk.act(**{"by": "ann", **fields})
            assert (answer.status_code, reason in answer.text) == (400, True), name
        assert desk.actions == []


def test_other_bodies_and_withdrawn_alerts_are_refused(tmp_path: Path) -> None:
    with acting_console(tmp_path) as desk:
        answer = desk.client.post(PAGE, content=b"{}", headers={"content-type": "application/json"})
        assert answer.status_code == 400
        commit(desk.lake, CONJUNCTION_ALERTS, [{**ALERT, "op": "retract"}])
        answer = desk.act(by="ann")
        assert answer.status_code == 404 and "withdrawn" in answer.text
        assert "<form" not in desk.text()
