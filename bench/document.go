package main

import (
	"fmt"
	"os"
	"strings"
)

// The lines of a document between which results belong.
const (
	resultsBegin = "<!-- bench -->\n"
	resultsEnd   = "<!-- /bench -->\n"
)

// insert puts the results into a document, where one was named.
func (r report) insert(path string) error {
	if path == "" {
		return nil
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(old), resultsBegin)
	_, after, ended := strings.Cut(rest, resultsEnd)
	if !found || !ended {
		return fmt.Errorf("%s has no lines %q and %q to put the results between", path, strings.TrimSpace(resultsBegin), strings.TrimSpace(resultsEnd))
	}
	var results strings.Builder
	r.document(&results)
	return os.WriteFile(path, []byte(before+resultsBegin+results.String()+resultsEnd+after), 0o644)
}
