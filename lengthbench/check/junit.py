"""JUnit XML: a suite a table, a test a judgement. `failure` fails the gate, `error` could not be compared."""

import re
from xml.etree import ElementTree

from lengthbench.check.gate import Report
from lengthbench.check.judge import FAILING, OPEN

ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold."""


def text(report: Report) -> str:
    root = ElementTree.Element("testsuites", name="lengthbench check")
    for table in dict.fromkeys(j.cell.table for j in report.judgements):
        own = [j for j in report.judgements if j.cell.table == table]
        failed = sum(j.verdict in FAILING for j in own)
        errors = sum(j.verdict == OPEN for j in own)
        suite = ElementTree.SubElement(
            root, "testsuite", name=table, tests=str(len(own)), failures=str(failed), errors=str(errors), skipped="0"
        )
        for j in own:
            test = ElementTree.SubElement(suite, "testcase", classname=f"lengthbench.{table}", name=_legal(j.name))
            if j.verdict in FAILING or j.verdict == OPEN:
                tag = "error" if j.verdict == OPEN else "failure"
                body = ElementTree.SubElement(test, tag, type=j.verdict, message=_legal(f"{j.verdict}: {j.said}"))
                body.text = _legal(f"{j.name}: {j.said}")
            elif j.said:
                ElementTree.SubElement(test, "system-out").text = _legal(f"{j.verdict}: {j.said}")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _legal(words: str) -> str:
    return ILLEGAL.sub("�", words)
