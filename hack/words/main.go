package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

const allowList = "hack/words/allowed.txt"

// A finding is a phrase at its place.
type finding struct {
	path string
	text
	phrase
	at int // in the text's body
}

func main() {
	count := flag.Bool("count", false, "print how often each phrase occurs per 10,000 words")
	list := flag.Bool("list", false, "print every phrase below the paths, allowed or not")
	write := flag.Bool("w", false, "write "+allowList+" with the numbers of today")
	flag.Parse()

	if err := run(*count, *list, *write, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(count, list, write bool, below []string) error {
	findings, words, err := search(below)
	if err != nil {
		return err
	}

	switch {
	case count:
		printRates(findings, words)
		return nil
	case list:
		for _, f := range findings {
			fmt.Println(f)
		}
		return nil
	case write:
		return writeAllowed(findings)
	}

	allowed, err := readAllowed()
	if err != nil {
		return err
	}
	return check(findings, allowed)
}

// search returns the phrases in all files that git knows below the paths, and the number of words by kind of text.
func search(below []string) ([]finding, map[string]int, error) {
	arguments := append([]string{"ls-files", "-co", "--exclude-standard", "--"}, below...)
	out, err := exec.Command("git", arguments...).Output()
	if err != nil {
		return nil, nil, fmt.Errorf("git ls-files: %w", err)
	}

	var findings []finding
	words := map[string]int{}
	for path := range strings.Lines(string(out)) {
		path = strings.TrimSpace(path)
		prose := strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".md")
		if !prose || strings.Contains(path, "testdata/") || strings.HasPrefix(path, "hack/words/") {
			continue
		}
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // removed, and not committed
		}
		if err != nil {
			return nil, nil, err
		}
		texts, err := textsOf(path, string(content))
		if err != nil {
			return nil, nil, err
		}
		for _, t := range texts {
			words[t.kind] += len(strings.Fields(t.body))
			find(t.body, func(p phrase, at int) {
				findings = append(findings, finding{path, t, p, at})
			})
		}
	}
	return findings, words, nil
}

// String returns the place, the phrase with the words around it, and the advice.
func (f finding) String() string {
	from, to := max(0, f.at-40), min(len(f.body), f.at+50)
	return fmt.Sprintf("%s:%d: %s: …%s… (%s)", f.path, f.line, f.name, f.body[from:to], f.instead)
}

// check fails if a file has other numbers of phrases than allowed: more are new, and fewer have to leave the list.
func check(findings []finding, allowed map[string]int) error {
	byPath := map[string][]finding{}
	for _, f := range findings {
		byPath[f.path] = append(byPath[f.path], f)
	}

	bad := false
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		if len(byPath[path]) <= allowed[path] {
			continue
		}
		bad = true
		for _, f := range byPath[path] {
			fmt.Println(f)
		}
	}
	if bad {
		return fmt.Errorf("reword the phrases above")
	}

	for path, n := range allowed {
		if len(byPath[path]) < n {
			return fmt.Errorf("%s has fewer phrases than %s admits: run go run ./hack/words -w", path, allowList)
		}
	}
	return nil
}

// printRates prints for each phrase how often it occurs per 10,000 words of each kind of text.
func printRates(findings []finding, words map[string]int) {
	kinds := slices.Sorted(maps.Keys(words))
	for _, kind := range kinds {
		fmt.Printf("%-14s %d words\n", kind, words[kind])
	}
	for _, p := range phrases {
		fmt.Printf("%-12s", p.name)
		for _, kind := range kinds {
			n := 0
			for _, f := range findings {
				if f.name == p.name && f.kind == kind {
					n++
				}
			}
			fmt.Printf("  %s %.1f (%d)", kind, 10_000*float64(n)/float64(max(words[kind], 1)), n)
		}
		fmt.Println()
	}
}

// readAllowed returns the number of phrases that each file can still have, from lines such as "12 internal/engine/step.go".
func readAllowed() (map[string]int, error) {
	content, err := os.ReadFile(allowList)
	if err != nil {
		return nil, err
	}
	allowed := map[string]int{}
	for line := range strings.Lines(string(content)) {
		number, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("%s: %q does not start with a number", allowList, line)
		}
		allowed[path] = n
	}
	return allowed, nil
}

func writeAllowed(findings []finding) error {
	numbers := map[string]int{}
	for _, f := range findings {
		numbers[f.path]++
	}
	var lines strings.Builder
	for _, path := range slices.Sorted(maps.Keys(numbers)) {
		fmt.Fprintf(&lines, "%d %s\n", numbers[path], path)
	}
	return os.WriteFile(allowList, []byte(lines.String()), 0o600)
}
