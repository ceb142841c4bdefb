package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

const readme = "../../README.md"

// chart is the output of `helm template …` in this test.
const chart = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - name: shop
        image: registry.example/shop-server:v1
`

// readmeSteps are the commands of the README's table in order, and their output.
var readmeSteps = []struct {
	command string
	// before runs first, and has to succeed.
	before string
	want   string
}{
	{command: "kubectl package init shop --cluster", want: "The package shop is in shop. Next:\n…"},
	{before: "mkdir chart; cd chart", command: "helm template … | kubectl package kickstart shop -f -", want: `Kickstarted the "shop" package with 1 objects.
…`},
	{before: "kubectl package test shop/; cd ..", command: "kubectl package test shop/", want: "✓ defaults  passed\n✓ debug  passed"},
	{command: "kubectl package build shop/ --tag registry.example/shop:v1 --push", want: `
Package built successfully!
  digest  sha256:…
  pushed  registry.example/shop:v1`},
	{command: "kubectl package install registry.example/shop:v1 --cluster", want: `
clusterpackage shop created
…
   0.1s  phase config: ready, 1/1
…
   0.1s  phase deploy: ready, 2/2
clusterpackage shop is available: shop 0.1.0, revision 1, after 0.1s`},
	{
		before: "sed -i 's/version: 0.1.0/version: 0.2.0/; s/default: info/default: debug/' shop/manifest.yaml\n" +
			"kubectl package test shop/ --update\n" +
			"kubectl package build shop/ --tag registry.example/shop:v2 --push",
		command: "kubectl package plan registry.example/shop:v2 clusterpackage/shop", want: `
clusterpackage shop  revision 1 → 2
  package  shop 0.1.0 → shop 0.2.0
…
    ~ ConfigMap …
        ~ data["config.yaml"] …
…
Plan: …`,
	},
	{command: "kubectl package explain clusterpackage/shop", want: "clusterpackage shop: available, its status reports no problem"},
	{before: "kubectl package install registry.example/shop:v2 --cluster", command: "kubectl package rollout undo clusterpackage/shop", want: `
clusterpackage shop changed: image registry.example/shop:v2 → registry.example/shop@sha256:… (revision 1)
…
clusterpackage shop is available: shop 0.1.0, revision 3, after 0.1s`},
}

// readmeEnd removes the package that the last of these commands installs.
const readmeEnd = "kubectl package delete clusterpackage/shop"

var codeSpan = regexp.MustCompile("`([^`]+)`")

// readmeTable returns the commands of the README's table.
func readmeTable(t *testing.T) (commands []string) {
	t.Helper()
	data, err := os.ReadFile(readme)
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(data), "\n| To | Run |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		found := 0
		for _, span := range codeSpan.FindAllStringSubmatch(row, -1) {
			if command := strings.ReplaceAll(span[1], `\|`, "|"); strings.Contains(command, "kubectl package") {
				commands, found = append(commands, command), found+1
			}
		}
		if found == 0 {
			t.Errorf("the README's table has a row without a command: %s", row)
		}
	}
	return commands
}

// Every command of the README's table works as written and in order.
func TestReadme(t *testing.T) {
	var known []string
	for _, s := range readmeSteps {
		known = append(known, s.command)
	}
	if table := readmeTable(t); !slices.Equal(table, known) {
		t.Fatalf("the README's table has the commands\n%s\nand this test runs\n%s", strings.Join(table, "\n"), strings.Join(known, "\n"))
	}
	s := newShell(t, harness.Shared(t))
	s.write(t, filepath.Join(filepath.Dir(s.dir), "bin", "helm"), "#!/bin/sh\ncat <<'EOF'\n"+chart+"EOF\n", 0o755)
	for _, step := range readmeSteps {
		if out, code := s.run(t, "set -e\n"+step.before); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", step.before, code, strings.Join(out, "\n"))
		}
		want := strings.Split(strings.TrimPrefix(step.want, "\n"), "\n")
		if got, code := s.run(t, step.command); code != 0 || !matches(want, got) {
			t.Fatalf("%s ends with code %d and prints\n%s\nwant\n%s", step.command, code, strings.Join(got, "\n"), step.want)
		}
	}
	if out, code := s.run(t, readmeEnd); code != 0 {
		t.Errorf("%s: exit code %d\n%s", readmeEnd, code, strings.Join(out, "\n"))
	}
}
