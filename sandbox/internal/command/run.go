package command

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/sandbox/internal/cluster"
)

// errAnnounced means that the error was already printed on standard output.
var errAnnounced = errors.New("announced")

var errParentGone = errors.New("standard input was closed")

func newRun() *cobra.Command {
	var options cluster.Options
	var format string
	var withParent, keep, announce bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a sandbox in the foreground",
		Long: `Run a sandbox in the foreground: it is described on standard output when it is ready, and stops,
with its data removed, on SIGINT or SIGTERM. With --stop-with-parent it also stops when standard input
is closed: a test that holds the other end of that pipe takes the sandbox with it even when it is killed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Ephemeral = !keep
			complete, err := options.Complete()
			if err != nil {
				return tell(cmd.OutOrStdout(), announce, err)
			}
			ctx := cmd.Context()
			if withParent {
				ctx = endWithInput(ctx, cmd.InOrStdin())
			}
			err = cluster.Run(ctx, complete, supervisorLog(complete, announce), func(info cluster.Info) {
				if announce {
					_ = json.NewEncoder(cmd.OutOrStdout()).Encode(cluster.Announcement{Sandbox: &info})
					return
				}
				_ = printInfo(cmd.OutOrStdout(), format, info)
			})
			return tell(cmd.OutOrStdout(), announce, err)
		},
	}

	target(cmd, &options)
	contents(cmd, &options, 0)
	outputFlag(cmd, &format)
	cmd.Flags().BoolVar(&withParent, "stop-with-parent", false, "stop when standard input is closed")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the data and logs of a sandbox that has stopped")
	cmd.Flags().BoolVar(&announce, "announce", false, "print one line of JSON: {\"sandbox\": …} when ready or {\"error\": …}")
	return cmd
}

// tell prints an error as an announcement if requested.
func tell(w io.Writer, announce bool, err error) error {
	if err == nil || !announce {
		return err
	}
	var running *cluster.RunningError
	_ = json.NewEncoder(w).Encode(cluster.Announcement{Error: err.Error(), Running: errors.As(err, &running)})
	return errAnnounced
}

// endWithInput returns a context that ends when input does.
func endWithInput(parent context.Context, input io.Reader) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		_, _ = io.Copy(io.Discard, input)
		cancel(errParentGone)
	}()
	return ctx
}

// supervisorLog writes to standard error. A supervisor that announces itself has no useful standard
// error, so it writes to a file along with the data folder's other logs.
func supervisorLog(o cluster.Options, announce bool) *log.Logger {
	const flags = log.LstdFlags | log.Lmicroseconds
	if !announce {
		return log.New(os.Stderr, "sandbox: ", flags)
	}
	return log.New(&lateFile{path: filepath.Join(o.Dir, "logs", "supervisor.log")}, "", flags)
}

// lateFile opens its file anew for every line, because the data folder is made only after the first
// one.
type lateFile struct{ path string }

// Write appends p to the file. A line that cannot be written is lost.
func (l *lateFile) Write(p []byte) (int, error) {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return len(p), nil
	}
	defer file.Close()
	return file.Write(p)
}
