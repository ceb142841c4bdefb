package cli

import (
	"context"
	"io"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/describe"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// explainPackage says what a package in a folder or an image is.
func explainPackage(
	ctx context.Context, streams genericiooptions.IOStreams, from sourceFlags, preview *previewFlags, out *output.Flags, source string,
) error {
	files, err := from.read(ctx, source)
	if err != nil {
		return err
	}
	pkg, _, err := preview.load(ctx, streams, source, files)
	if err != nil {
		return err
	}
	report, err := describe.Of(pkg, preview.component, componentsOf(files))
	if err != nil {
		return err
	}
	if out.Wanted() {
		return out.Print(ctx, streams.Out, report)
	}
	width := 0
	if terminal.IsTerminal(streams.Out) {
		width, _ = terminal.Size(streams.Out)
	}
	_, err = io.WriteString(streams.Out, describe.Text(report, describe.Options{Styles: terminal.StylesFor(streams.Out), Width: width}))
	return err
}
