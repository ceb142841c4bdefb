package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/manager"
	"lockstep.run/lockstep/internal/ui"
)

var (
	usageLine   = regexp.MustCompile(`(?m)^ +(?:-\w, )?--(\S+)(?: (\w+))? {2,}(.*)$`)
	environment = regexp.MustCompile(` \[([^\]]*)\]`)
	byDefault   = regexp.MustCompile(` \(default:? ([^)]*)\)`)
)

// flags returns the page of the manager's flags, with the defaults of an empty environment.
func flags() string {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "LOCKSTEP_") || strings.HasPrefix(name, "PKO_") || name == "LOG_LEVEL" {
			_ = os.Unsetenv(name)
		}
	}

	var b strings.Builder
	b.WriteString(header("Flags of the manager", "lockstep-manager --help"))
	b.WriteString("| Flag | Environment | Default | Meaning |\n|---|---|---|---|\n")
	for _, m := range usageLine.FindAllStringSubmatch(manager.Usage(), -1) {
		name, kind, meaning := m[1], m[2], m[3]
		if kind = map[string]string{"": "", "stringArray": " …, repeatable"}[kind]; kind == "" && m[2] != "" {
			kind = " …"
		}
		var cells []string
		for _, part := range []*regexp.Regexp{environment, byDefault} {
			found := part.FindStringSubmatch(meaning)
			if found == nil {
				cells = append(cells, "")
				continue
			}
			meaning = strings.Replace(meaning, found[0], "", 1)
			cells = append(cells, strings.Trim(found[1], `"`))
		}
		fmt.Fprintf(&b, "| `--%s`%s | %s | %s | %s |\n", name, kind, cell(cells[0]), cell(cells[1]), cell(meaning))
	}

	b.WriteString("\nPackage Operator's names of these flags work as well, also with one dash: `-metrics-addr`, `-pprof-addr`, `-enable-leader-election`. Its other flags are ignored, except `-self-bootstrap`, which is refused. Logs are JSON, one object a line, on standard error.\n")
	return b.String()
}

// common are flags that many commands share, by name. The page has them once.
var common = map[string]bool{
	"context": true, "kubeconfig": true, "namespace": true, "query": true, "insecure": true, "insecure-registry": true,
	"registry-ca": true, "registry-ca-file": true, "registry-proxy": true,
}

// commands returns the page of commands: the help of each, and its flags.
func commands() string {
	var b, all strings.Builder
	shared, seen := map[string]string{}, map[string]int{}
	eachCommand(cli.Tree(ui.Commands), func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if common[f.Name] {
				shared[flagRow(f)] = f.Name
				seen[flagRow(f)]++
			}
		})
	})

	for _, row := range slices.Sorted(maps.Keys(shared)) {
		if seen[row] < 5 {
			delete(shared, row)
			continue
		}
		all.WriteString(row)
	}

	b.WriteString(header("Commands and flags", "the help of kubectl package"))
	b.WriteString("Every command in the words of `--help`. What holds for all of them, such as exit codes, is in [the command line](../cli.md). Flags that many share:\n\n| Flag | |\n|---|---|\n" + all.String())
	eachCommand(cli.Tree(ui.Commands), func(cmd *cobra.Command) {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n```text\n%s\n```\n", strings.TrimPrefix(cmd.CommandPath(), "kubectl package "), strings.TrimSuffix(cmd.Short, "."), cmd.UseLine())
		rows := 0
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			row := flagRow(f)
			if f.Hidden || f.Deprecated != "" || f.Name == "help" || shared[row] != "" {
				return
			}
			if rows++; rows == 1 {
				b.WriteString("\n| Flag | |\n|---|---|\n")
			}
			b.WriteString(row)
		})
		b.WriteString(prose(cmd.Long))
		if cmd.Example != "" {
			fmt.Fprintf(&b, "\n```sh\n%s\n```\n", indentation.ReplaceAllString(strings.Trim(cmd.Example, "\n"), ""))
		}
	})

	return b.String()
}

func flagRow(f *pflag.Flag) string {
	name := "`--" + f.Name + "`"
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	value, usage := pflag.UnquoteUsage(f)
	if value != "" {
		name = strings.TrimSuffix(name, "`") + " " + strings.ReplaceAll(value, "|", `\|`) + "`"
	}
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
		usage += " (default `" + f.DefValue + "`)"
	}
	return fmt.Sprintf("| %s | %s |\n", name, cell(strings.Join(strings.Fields(usage), " ")))
}

var (
	indentation = regexp.MustCompile(`(?m)^  `)
	// special matches characters that are markup in Markdown.
	special = regexp.MustCompile(`[*<>_~\[\]]`)
	// pageLink matches how help refers to a page.
	pageLink = regexp.MustCompile(`docs/([a-z/-]+)\.md(#[a-z0-9-]+)?`)
	// flagName matches a flag in a sentence.
	flagName = regexp.MustCompile(`(^|[ (])(--?[a-z][a-z-]*(?:=[a-z]+)?)`)
)

// prose returns the text of a command's help as Markdown: paragraphs, lists, and indented text
// unchanged.
func prose(help string) string {
	var b strings.Builder
	for _, paragraph := range strings.Split(strings.Trim(help, "\n"), "\n\n") {
		if strings.HasPrefix(paragraph, "  ") {
			fmt.Fprintf(&b, "\n```text\n%s\n```\n", indentation.ReplaceAllString(paragraph, ""))
			continue
		}
		if paragraph == "" {
			continue
		}
		if !strings.HasPrefix(paragraph, "- ") {
			paragraph = strings.Join(strings.Fields(paragraph), " ")
		}
		if !strings.Contains(paragraph, "`") { // otherwise it has its own markup
			paragraph = flagName.ReplaceAllString(special.ReplaceAllString(paragraph, `\$0`), "$1`$2`")
		}
		paragraph = pageLink.ReplaceAllStringFunc(paragraph, func(page string) string {
			m := pageLink.FindStringSubmatch(page)
			return "[" + m[1][strings.LastIndex(m[1], "/")+1:] + "](../" + m[1] + ".md" + m[2] + ")"
		})
		b.WriteString("\n" + paragraph + "\n")
	}

	return b.String()
}

// eachCommand calls do for each command that can be run, ordered by path.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		if sub.Runnable() {
			do(sub)
		}
		eachCommand(sub, do)
	}
}
