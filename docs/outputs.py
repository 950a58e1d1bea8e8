"""A hook of MkDocs: tutorials show what their examples give when the site is built."""

import doctest
import logging
import os
import subprocess
import sys
from pathlib import Path


class Outputs(doctest.OutputChecker):
    """Keeps what each example gave: what it printed, or its error's text."""

    given: tuple[str, ...] = ()

    def check_output(self, want, got, optionflags):
        """Tell whether it is what the page expects."""
        self.given += (got,)
        return super().check_output(want, got, optionflags)


def main(path):
    """Print a page with its examples' outputs; say on stderr which are wrong."""
    text, outputs = path.read_text(encoding="utf-8"), Outputs()
    globs, parser = {"__name__": "__main__"}, doctest.DocTestParser()
    test = parser.get_doctest(text, globs, path.name, str(path), 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(outputs, optionflags=flags)
    wrong = runner.run(test, out=sys.stderr.write).failed
    lines, given = text.splitlines(), () if wrong else outputs.given
    for example, got in [*zip(test.examples, given, strict=False)][::-1]:
        start = example.lineno + example.source.count("\n")
        head = ["Traceback (most recent call last):"] * (example.exc_msg is not None)
        lines[start : start + example.want.count("\n")] = head + got.splitlines()
    print("\n".join(lines))


def on_page_markdown(markdown, page, **_):
    """Run a tutorial on the CPU in its own process; a wrong output is a warning."""
    if not page.file.src_uri.startswith("tutorials/"):
        return markdown
    result = subprocess.run(  # noqa: S603 - this program
        [sys.executable, "-X", "utf8", __file__, page.file.abs_src_path],
        env={**os.environ, "XDEV_DEVICE": "cpu"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if result.stderr:
        logging.getLogger("mkdocs.hooks").warning(result.stderr)
    return result.stdout.removeprefix(page.file.content_string.removesuffix(markdown))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
