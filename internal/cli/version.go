package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/version"
)

type buildReport struct {
	Version  string            `json:"version"`
	Go       string            `json:"go"`
	Platform string            `json:"platform"`
	Settings map[string]string `json:"settings,omitempty"`
}

func newVersion(streams genericiooptions.IOStreams) *cobra.Command {
	var flags output.Flags
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program and how it was built",
		Args:  takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.Check(); err != nil {
				return usageError(cmd, err)
			}
			report := buildReport{Version: version.Get(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Settings: map[string]string{}}
			var keys []string
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					keys = append(keys, s.Key)
					report.Settings[s.Key] = s.Value
				}
			}
			if flags.Wanted() {
				return flags.Print(cmd.Context(), streams.Out, report)
			}
			fmt.Fprintf(streams.Out, "kubectl-package\t%s\ngo\t%s\nplatform\t%s\n", report.Version, report.Go, report.Platform)
			for _, key := range keys {
				fmt.Fprintf(streams.Out, "%s\t%s\n", terminal.Line(key), terminal.Line(report.Settings[key]))
			}
			return nil
		},
	}
	flags.Add(cmd)
	return cmd
}
