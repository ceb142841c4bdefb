package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// installedName reports whether an argument names an installed package: with its kind,
// or as a bare name that is neither a folder with a package nor an image.
func installedName(arg string) (cluster.Name, bool) {
	if isPath(arg) && (!bareName(arg) || hasManifest(arg)) {
		return cluster.Name{}, false
	}
	n, err := cluster.ParseName(arg)
	return n, err == nil && (n.Scope != "" || !strings.ContainsAny(arg, ":@."))
}

// bareName reports whether an argument may name a package as well as a folder.
func bareName(arg string) bool { return len(validation.IsDNS1123Label(arg)) == 0 }

// hasManifest reports whether a folder has a manifest.
func hasManifest(folder string) bool {
	for _, file := range []string{"manifest.yaml", "manifest.yml"} {
		if _, err := os.Stat(filepath.Join(folder, file)); err == nil {
			return true
		}
	}
	return false
}

// explainInstalled says what an installed package waits for.
func explainInstalled(ctx context.Context, streams genericiooptions.IOStreams, connection *connection, out *output.Flags, n cluster.Name) error {
	cl, target, pkg, err := connection.find(ctx, n)
	if err != nil {
		return err
	}
	snap, deployment, err := cl.Look(ctx, target, pkg)
	if err != nil {
		return err
	}
	all, err := cl.AnyKind()
	if err != nil {
		return err
	}
	d, err := diagnose.Explain(ctx, all, snap, deployment)
	if err != nil {
		return cl.Explain("cannot explain "+target.String(), err)
	}
	if out.Wanted() {
		return out.Print(ctx, streams.Out, d)
	}
	_, err = io.WriteString(streams.Out, diagnosisText(target.String(), d, terminal.StylesFor(streams.Out)))
	return err
}

// diagnosisText shows a diagnosis to a person: the cause, what to do, and what leads
// to it.
func diagnosisText(name string, d *diagnose.Diagnosis, styles terminal.Styles) string {
	var b strings.Builder
	line := func(text string) { b.WriteString(strings.TrimRight(text, " ") + "\n") }
	if d.Reason == diagnose.ReasonNone {
		line(styles.Strong(terminal.Line(name)) + ": " + styles.Good(d.Summary.Words()) + ", " + terminal.Line(d.Cause))
		return b.String()
	}
	head := styles.Strong(terminal.Line(name)) + ": " + styles.Bad(d.Summary.Words())
	if d.Phase != "" {
		head += ", phase " + terminal.Line(d.Phase) + " waits"
	}
	line(head)
	line("Cause  " + terminal.Line(d.Cause))
	if d.Remedy != "" {
		line("Do     " + terminal.Line(d.Remedy))
	}
	line("")
	for _, link := range d.Chain {
		text := strings.Repeat("  ", link.Depth) + terminal.Line(link.Object)
		if link.State != "" {
			text += "  " + styles.Busy(terminal.Line(link.State))
		}
		if link.Message != "" {
			text += "  " + terminal.Line(link.Message)
		}
		line(text)
	}
	return b.String()
}
