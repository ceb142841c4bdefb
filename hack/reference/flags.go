package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/manager"
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
	b.WriteString(begin("Flags of the manager", "lockstep-manager --help"))
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

// commands returns the page of commands and their flags.
func commands() string {
	var b strings.Builder
	b.WriteString(begin("Commands and flags", "the help of kubectl package"))
	b.WriteString("Every command with its flags, in the words of `--help`. What they print and why is in [the command line](../cli.md), and so are the flags that all have.\n")
	eachCommand(cli.Tree(), func(cmd *cobra.Command) {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n```text\n%s\n```\n", strings.TrimPrefix(cmd.CommandPath(), "kubectl package "), strings.TrimSuffix(cmd.Short, "."), cmd.UseLine())
		rows := 0
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Deprecated != "" || f.Name == "help" {
				return
			}
			if rows++; rows == 1 {
				b.WriteString("\n| Flag | |\n|---|---|\n")
			}
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
			fmt.Fprintf(&b, "| %s | %s |\n", name, cell(strings.Join(strings.Fields(usage), " ")))
		})
	})
	return b.String()
}

// eachCommand calls do for each command that can be run, in the order of their paths.
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
