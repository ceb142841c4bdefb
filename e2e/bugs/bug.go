package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// level is the environment that a test needs.
type level string

const (
	// unit tests need no API server.
	unit level = "unit"
	// integration tests need an API server.
	integration level = "integration"
	// endToEnd tests run the manager in whole sandboxes.
	endToEnd level = "e2e"
)

// bug is one patch.
type bug struct {
	// Number and Name are parts of the file's name.
	Number, Name string
	Path         string
	// What describes the bug.
	What string
	// Invariant is the number of the broken invariant.
	Invariant int
	// Checks are the tests that notice it.
	Checks []check
}

// check is a test that notices a bug.
type check struct {
	// Args are the arguments of go test, Env is its environment, as NAME=value.
	Args, Env []string
	// Says matches a line of the failed test's output.
	Says *regexp.Regexp
}

var fileName = regexp.MustCompile(`^(\d\d\d?)-([a-z0-9-]+)\.patch$`)

// readBugs reads the headers of all patches of a folder, by invariant and number.
func readBugs(dir string) ([]bug, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	var bugs []bug
	for _, path := range paths {
		b, err := readBug(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		if i := len(bugs) - 1; i >= 0 && bugs[i].Number == b.Number {
			return nil, fmt.Errorf("%s and %s have the same number", bugs[i], b)
		}
		bugs = append(bugs, b)
	}
	slices.SortStableFunc(bugs, func(a, b bug) int { return cmp.Compare(a.Invariant, b.Invariant) })
	return bugs, nil
}

func readBug(path string) (bug, error) {
	f, err := os.Open(path)
	if err != nil {
		return bug{}, err
	}
	defer f.Close()
	b, err := parseBug(filepath.Base(path), f)
	b.Path = path
	return b, err
}

// parseBug reads the header of a patch.
func parseBug(file string, content io.Reader) (bug, error) {
	name := fileName.FindStringSubmatch(file)
	if name == nil {
		return bug{}, errors.New("the name is not like 01-short-name.patch, with two or three digits")
	}
	b := bug{Number: name[1], Name: name[2]}
	key, value := "", ""
	for lines := bufio.NewScanner(content); lines.Scan(); {
		line, isHeader := strings.CutPrefix(lines.Text(), "# ")
		if more, continued := strings.CutPrefix(line, "  "); isHeader && continued {
			value += " " + strings.TrimSpace(more)
			continue
		}
		if err := b.set(key, value); err != nil {
			return bug{}, err
		}
		if !isHeader {
			break
		}
		key, value, _ = strings.Cut(line, ": ")
	}
	return b, b.complete()
}

// set takes one entry of the header.
func (b *bug) set(key, value string) (err error) {
	switch key {
	case "":
	case "Bug":
		b.What = value
	case "Invariant":
		b.Invariant, err = strconv.Atoi(value)
	case "Caught by":
		env, args, isTest := strings.Cut(value, "go test ")
		if !isTest {
			return fmt.Errorf("%q is not a go test command", value)
		}
		b.Checks = append(b.Checks, check{Args: strings.Fields(args), Env: strings.Fields(env)})
	case "Says":
		if len(b.Checks) == 0 || b.Checks[len(b.Checks)-1].Says != nil {
			return errors.New("an entry Says has to follow an entry Caught by")
		}
		b.Checks[len(b.Checks)-1].Says, err = regexp.Compile(value)
	default:
		return fmt.Errorf("the header has no entry %q", key)
	}
	return err
}

func (b *bug) complete() error {
	switch {
	case b.What == "":
		return errors.New("the header does not describe the bug")
	case b.Invariant < 1 || b.Invariant > 11:
		return errors.New("the header names no invariant")
	case len(b.Checks) == 0:
		return errors.New("the header names no test")
	}
	for _, c := range b.Checks {
		if c.Says == nil || c.Says.MatchString("") {
			return fmt.Errorf("the header does not match the output of %s", c)
		}
		if c.pkg() == "" || c.test() == "" {
			return fmt.Errorf("%s does not name a single test of a package", c)
		}
	}
	slices.SortStableFunc(b.Checks, func(x, y check) int { return cmp.Compare(x.level().rank(), y.level().rank()) })
	return nil
}

// String returns number and name.
func (b bug) String() string { return b.Number + "-" + b.Name }

// String returns package and test.
func (c check) String() string { return c.pkg() + " " + c.test() }

func (c check) pkg() string {
	for _, arg := range c.Args {
		if strings.HasPrefix(arg, "./") {
			return strings.TrimPrefix(arg, "./")
		}
	}
	return ""
}

// test returns the name of the test after -run, in words.
func (c check) test() string {
	at := slices.Index(c.Args, "-run")
	if at < 0 || at+1 == len(c.Args) {
		return ""
	}
	return strings.NewReplacer("^", "", "$", "").Replace(c.Args[at+1])
}

func (c check) level() level {
	switch {
	case strings.HasPrefix(c.pkg(), "e2e/"):
		return endToEnd
	case strings.HasPrefix(c.pkg(), "integration/"):
		return integration
	}
	return unit
}

func (l level) rank() int { return slices.Index([]level{unit, integration, endToEnd}, l) }
