package main

import (
	"bytes"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"lockstep.run/lockstep/docs/schemas/outputs"
)

// The schemas are those of what commands print now.
func TestOutputsAreCurrent(t *testing.T) {
	t.Parallel()
	want, err := outputSchemas()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := writeOutputs(folder); err != nil {
		t.Fatal(err)
	}
	committed, err := fs.Glob(outputs.Files, "*.json")
	if err != nil || len(committed) != len(want) {
		t.Errorf("there are %d schemas, not %d: run ./task generate", len(committed), len(want))
	}
	for file := range want {
		made, err := os.ReadFile(folder + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if is, err := outputs.Files.ReadFile(file); err != nil || !bytes.Equal(is, made) {
			t.Errorf("docs/schemas/outputs/%s is stale, run ./task generate: %v", file, err)
		}
	}
}

// released has the fields of the release before, a line each.
const released = "testdata/released.txt"

// No field that a release prints goes, none changes its type, and none that is always there is left out. With LOCKSTEP_RELEASED=1, as at
// a release, the present fields are written.
func TestFieldsOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	schemas, err := outputSchemas()
	if err != nil {
		t.Fatal(err)
	}
	var now []string
	for file, schema := range schemas {
		now = append(now, fieldsOf(file, schema)...)
	}
	slices.Sort(now)
	if os.Getenv("LOCKSTEP_RELEASED") != "" {
		if err := os.WriteFile(released, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(released)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(before)), "\n")
	if len(lines) < 400 {
		t.Errorf("only %d fields were released", len(lines))
	}
	for _, line := range lost(lines, now) {
		t.Errorf("released, and not printed any more: %s", line)
	}
}

func fieldsOf(file string, schema map[string]any) (lines []string) {
	fields(schema, strings.TrimSuffix(file, ".json"), func(path, is string) { lines = append(lines, path+": "+is) })
	return lines
}

// lost are lines that are not there any more.
func lost(before, now []string) []string {
	return slices.DeleteFunc(slices.Clone(before), func(line string) bool { return slices.Contains(now, line) })
}

// The comparison notices what a program that reads the JSON would.
func TestChangesOfFieldsAreNoticed(t *testing.T) {
	t.Parallel()
	text := func() map[string]any { return map[string]any{"type": "string"} }
	schema := func(change func(properties map[string]any)) map[string]any {
		properties := map[string]any{"name": text(), "phases": map[string]any{"type": "array", "items": map[string]any{
			"type": "object", "properties": map[string]any{"state": text()},
		}}}
		change(properties)
		return map[string]any{"type": "object", "required": []any{"name"}, "properties": properties}
	}
	before := fieldsOf("a.json", schema(func(map[string]any) {}))
	optional := schema(func(map[string]any) {})
	delete(optional, "required")
	for reason, test := range map[string]struct {
		now  map[string]any
		want []string
	}{
		"a new field":       {schema(func(p map[string]any) { p["new"] = text() }), nil},
		"one that goes":     {schema(func(p map[string]any) { delete(p, "phases") }), []string{"a.phases: array", "a.phases[].state: string", "a.phases[]: object"}},
		"another type":      {schema(func(p map[string]any) { maps.Copy(p, map[string]any{"name": map[string]any{"type": "integer"}}) }), []string{"a.name: string"}},
		"one that may lack": {optional, []string{"a.name is there: always"}},
	} {
		got := lost(before, fieldsOf("a.json", test.now))
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
}

// What encodes itself is described by hand, or refused.
func TestEncodersAreKnown(t *testing.T) {
	t.Parallel()
	if _, err := alternatives([]any{struct{ At netip.Addr }{}}); err == nil || !strings.Contains(err.Error(), "netip.Addr") {
		t.Errorf("got %v", err)
	}
}
