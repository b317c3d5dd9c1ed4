"""The checks of tidy.py find what they look for: each case breaks one rule in an otherwise good tree."""
import pathlib
import tempfile
import unittest

import tidy

ID = '3a6d1f0be2e94c0f9d0a7c1a5b7e0101'
GOOD = {
    'src/base/message_id.h': f'// Ids.\n  X(started, "{ID}", "started") \\\n',
    'src/base/main.cc': 'log(ids::started);\n',
    'src/base/result.h': '// Results.\n#include <vector>\n',
    'src/store/commit_log.cc': '#include "base/result.h"\n#include "proto/record.h"\n',
    'src/proto/record.h': '// Records.\n',
    'packaging/systemd/rmqd.catalog': f'# comment\n-- {ID}\nSubject: Started\n\nIt started.\n',
}


def lines(count):
    return ''.join('  call();\n' for _ in range(count))


class Tidy(unittest.TestCase):
    def check(self, expected, changed=None):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**GOOD, **(changed or {})}.items():
                file = pathlib.Path(root) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            found = tidy.violations(root)
        self.assertEqual(len(found), len(expected), found)
        for part, violation in zip(expected, found):
            self.assertIn(part, violation)

    def test_good_tree(self):
        self.check([])

    def test_include_against_the_arrows(self):
        self.check(['src/base must not include store/x.h'], {'src/base/a.cc': '#include "store/x.h"\n'})
        self.check(['src/store must not include proto/x.h'], {'src/store/a.cc': '#include "proto/x.h"\n'})
        self.check(['src/ctl must not include uring/ring.h'], {'src/ctl/a.cc': '#  include "uring/ring.h"\n'})

    def test_include_without_folder(self):
        self.check(['by its path below src'], {'src/base/a.cc': '#include "result.h"\n'})

    def test_folder_without_row(self):
        self.check(['src/extra has no row'], {'src/extra/a.cc': '\n'})

    def test_long_file(self):
        self.check(['801 lines'], {'src/base/a.cc': 'int a;\n' * 801})
        self.check([], {'src/base/a.cc': 'int a;\n' * 800})

    def test_long_line(self):
        self.check(['a.cc:1: 111 columns'], {'src/base/a.cc': '/' * 111 + '\n'})
        self.check([], {'src/base/a.cc': 'ü' * 110 + '\n'})

    def test_long_function(self):
        def function(count, signature='void f(int a)'):
            return {'src/base/a.cc': f'namespace n {{\n{signature} {{\n{lines(count - 2)}}}\n}}\n'}
        self.check([], function(70))
        self.check(['a.cc:2: function f has 71 lines'], function(71))
        self.check(['function A::A has 71'], function(71, 'A::A(int b) : b_(b)'))
        self.check(['function TEST has 71'], function(71, 'TEST(A, b)'))

    def test_long_method_with_braces_in_literals(self):
        head = 'class A {\n  void f() const {\n  g("}}", \'}\', 1\'0); // }\n  if (a) { b(); }\n'
        text = head + lines(67) + '  }\n};\n'
        self.check(['function f has 71'], {'src/base/a.cc': text})

    def test_tables_and_types_are_no_functions(self):
        self.check([], {'src/base/a.cc': 'const int a[] = {\n' + '  f(1),\n' * 90 + '};\n'})
        self.check([], {'src/base/a.cc': 'struct A {\n' + '  void f();\n' * 90 + '};\n'})

    def test_header_without_idea(self):
        self.check(['opens with no comment'], {'src/base/a.h': '#pragma once\n'})

    def test_leftovers(self):
        self.check(['a path of one machine'], {'docs/a.md': 'see /home/' + 'joe/x\n'})
        self.check(['unfinished work'], {'docs/a.md': 'TO' + 'DO\n'})

    def test_catalog(self):
        catalog = 'packaging/systemd/rmqd.catalog'
        other = f'-- {"0" * 32}\nSubject: A\n\nText.\n'
        self.check(['no entry for started'], {catalog: ''})
        self.check(['is no message id'], {catalog: GOOD[catalog] + other})
        self.check([f'{ID} twice'], {catalog: GOOD[catalog] * 2})
        self.check(['lacks its Subject'], {catalog: f'-- {ID}\n\nIt started.\n'})
        self.check(['lacks its Subject or its text'], {catalog: f'-- {ID}\nSubject: Started\n\n'})
        self.check(['no line has the id started'], {'src/base/main.cc': ''})
        self.check(['no line has the id b', 'name started twice', 'is no message id'], {
            'src/base/message_id.h': GOOD['src/base/message_id.h'] + f'X(b, "{"1" * 32}", "started")\n',
            catalog: GOOD[catalog] + other + f'-- {"1" * 32}\nSubject: B\n\nText.\n'})


unittest.main()
