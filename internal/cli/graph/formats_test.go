package graph_test

import (
	"regexp"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/graph"
)

// Drawings for other programs have each package once, and a line for each dependency that something is installed for.
func TestFormats(t *testing.T) {
	t.Parallel()
	g := graph.Of([]corev1alpha1.GenericPackage{
		installed("shop/web", "web.example.com", "2.0.0", false, "db=shop/db", "mail=", "cert=cert"), installed("shop/db", "db.example.com", "1.0.0", true),
	})
	wantDOT := `digraph packages {
  rankdir=LR;
  node [shape=box, style=rounded, fontname=sans];
  n0 [label="package shop/db\ndb.example.com 1.0.0\navailable"];
  n1 [label="package shop/web\nweb.example.com 2.0.0\navailable"];
  n2 [label="clusterpackage cert\nnot read, or gone"];
  n1 -> n0 [label="db: db.example.com >=1"];
  n1 -> n2 [label="cert: cert.example.com >=1"];
}
`
	if got := g.DOT(g.Nodes(everything)); got != wantDOT {
		t.Errorf("got\n%s", got)
	}
	wantMermaid := `flowchart LR
  n0["package shop/db<br>db.example.com 1.0.0<br>available"]
  n1["package shop/web<br>web.example.com 2.0.0<br>available"]
  n2["clusterpackage cert<br>not read, or gone"]
  n1 -->|"db: db.example.com #62;=1"| n0
  n1 -->|"cert: cert.example.com #62;=1"| n2
`
	if got := g.Mermaid(g.Nodes(everything)); got != wantMermaid {
		t.Errorf("got\n%s", got)
	}
}

// No name ends a label, or brings markup into a drawing.
func TestFormatsOfHostileNames(t *testing.T) {
	t.Parallel()
	const bad = "x\"]; n9 -> n9 [URL=\"javascript:alert(1)\"]\\\n<img src=x onerror=alert(1)>#quot;`\u202e"
	evil := installed("shop/web", bad, bad, false, "db=shop/db")
	evil.PackageStatus().Dependencies[0].Name = bad
	g := graph.Of([]corev1alpha1.GenericPackage{evil, installed("shop/db", "db", "1.0.0", false)})
	dot, mermaid := g.DOT(g.Nodes(everything)), g.Mermaid(g.Nodes(everything))
	if lines := strings.Split(dot, "\n"); len(lines) != 8 {
		t.Errorf("%d lines:\n%s", len(lines), dot)
	}
	label := regexp.MustCompile(`^  n\d( -> n\d)? \[label="([^"\\]|\\.)*"(, style=dashed)?\];$`)
	for _, line := range strings.Split(dot, "\n")[3:6] {
		if !label.MatchString(line) {
			t.Errorf("a label ends early: %s", line)
		}
	}
	if strings.Contains(mermaid, "<img") || strings.Count(mermaid, `"`) != 6 || strings.Contains(mermaid+dot, "\u202e") {
		t.Errorf("got\n%s", mermaid)
	}
}
