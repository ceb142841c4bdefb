package docs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/render"
	"lockstep.run/lockstep/test/require"
)

// tables stand between "<!-- name -->" and "<!-- /name -->" of a page.
var tables = []struct {
	page, name string
	text       func() string
}{
	{"format.md", "limits", limitTables},
	{"templates.md", "functions", functionTable},
}

// The tables that are made from the code are up to date.
func TestTables(t *testing.T) {
	for _, table := range tables {
		path := folder + "/" + table.page
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		begin, end := "<!-- "+table.name+" -->\n", "<!-- /"+table.name+" -->"
		before, rest, ok := strings.Cut(string(data), begin)
		got, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Errorf("%s has no place for the table %s", table.page, table.name)
			continue
		}
		want := table.text()
		if got == want {
			continue
		}
		if os.Getenv("LOCKSTEP_UPDATE") == "" {
			t.Errorf("%s: the table %s is stale; LOCKSTEP_UPDATE=1 rewrites it. It has to be:\n%s", table.page, table.name, want)
			continue
		}
		require.NoError(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o644))
	}
}

func functionTable() string { return "`" + strings.Join(render.Functions(), "`, `") + "`.\n" }

// size writes bytes as people read them.
func size(n int) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%s KiB", number(n>>10))
	}
	return number(n) + " bytes"
}

// number writes a number with commas.
func number(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%g s", d.Seconds()) }

func limitTables() string {
	type row struct{ what, limit string }
	var b strings.Builder
	for i, table := range []struct {
		name string
		rows []row
	}{
		{"Image", []row{
			{"layers", number(limits.ImageLayers)},
			{"one layer; all layers, compressed", size(limits.LayerBytes) + "; " + size(limits.ImageBytes)},
			{"all layers, unpacked, with what is outside `/package`", size(limits.UnpackedBytes)},
			{"entries in all layers", number(limits.ArchiveEntries)},
			{"files of a package", number(limits.PackageFiles)},
			{"one file; all files of a package", size(limits.FileBytes) + "; " + size(limits.PackageBytes)},
			{"path below `/package`", fmt.Sprintf("%s, %d segments", size(limits.PathBytes), limits.PathDepth)},
		}},
		{"YAML", []row{
			{"manifest, lock", size(limits.ManifestBytes)},
			{"one document", fmt.Sprintf("%s, %d levels, %s values and %s of text with aliases expanded", size(limits.DocumentBytes), limits.DocumentDepth, number(limits.DocumentNodes), size(limits.DocumentTextBytes))},
			{"documents in a file", number(limits.DocumentsPerFile)},
			{"keys that lead to a field; directives before a document", size(limits.DocumentPathBytes) + "; " + number(limits.DocumentDirectives)},
		}},
		{"Package", []row{
			{"objects", number(limits.PackageObjects)}, {"phases", number(limits.PackagePhases)},
			{"dependencies on packages and APIs; all of them, as JSON; APIs that it provides", number(limits.Dependencies) + "; " + size(limits.DependenciesBytes) + "; " + number(limits.ProvidedAPIs)},
			{"one object, as JSON", size(limits.ObjectBytes)}, {"annotations of an object", size(limits.AnnotationBytes)},
			{"configuration, as JSON; with its defaults", size(limits.ConfigBytes) + "; " + number(limits.ConfigValues) + " values"},
			{"schema of the configuration", fmt.Sprintf("%s schemas, %s rules", number(limits.SchemaNodes), number(limits.SchemaRules))},
			{"values × schemas and values that one is compared with", number(limits.ConfigCheckWork)},
			{"icon", size(limits.IconBytes)}, {"values from Secrets", size(limits.SensitiveBytes)},
			{"patches; all of them together", number(limits.Patches) + "; " + size(limits.PatchBytes) + ", " + number(limits.PatchOperations) + " operations"},
			{"elements in lists of a patch × of the object that it is merged into", number(limits.PatchMergeWork)},
			{"named conditions and path rules", number(limits.Expressions)},
			{"problems reported", number(limits.Violations)},
		}},
		{"Templates", []row{
			{"rendering a package", fmt.Sprintf("%s, %s function calls and loop steps, %s of values read and made", seconds(limits.RenderTime), number(limits.TemplateSteps), size(limits.TemplateWorkBytes))},
			{"one value", fmt.Sprintf("%s, %d levels", size(limits.TemplateValueBytes), limits.TemplateValueDepth)},
			{"code between `{{` and `}}`", fmt.Sprintf("%s, %d levels and %s variables in one file", size(limits.TemplateCodeBytes), limits.TemplateNesting, number(limits.TemplateVariables))},
			{"templates that call each other", number(limits.TemplateDepth) + " levels"},
			{"elements of `until`, `seq`, `split…`", number(limits.TemplateItems)},
			{"regular expression or glob", size(limits.TemplatePatternBytes)},
			{"CEL expression", fmt.Sprintf("%s, cost %s", size(limits.ExpressionBytes), number(limits.ExpressionCost))},
			{"in a CEL expression, also of a schema or probe", fmt.Sprintf("%d macros, lists and maps of %d levels", limits.ExpressionMacros, limits.ExpressionNesting)},
			{"list or map that a CEL expression builds; all of them", number(limits.ExpressionValues) + " values; " + number(limits.ExpressionWork)},
		}},
		{"Probes", []row{
			{"probes of a revision", number(limits.Probes)},
			{"CEL rule", fmt.Sprintf("%s, cost %s", size(limits.ProbeCELBytes), number(limits.ProbeCELCost))},
			{"jq expression", fmt.Sprintf("%s, %s steps, %s of values", size(limits.ProbeJQBytes), number(limits.ProbeJQSteps), size(limits.ProbeJQWork))},
			{"all probes on one object; on all objects of a revision", fmt.Sprintf("cost %s; %s", number(limits.ProbeObjectCost), number(limits.ProbesCost))},
		}},
	} {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "| %s | Limit |\n|---|---|\n", table.name)
		for _, r := range table.rows {
			fmt.Fprintf(&b, "| %s | %s |\n", r.what, r.limit)
		}
	}
	return b.String()
}
