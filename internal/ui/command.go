package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/cli/command"
)

// uiCommand is kubectl package ui.
type uiCommand struct {
	command.Command
	port int
}

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	c := &uiCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the installed packages as a page in the browser",
		Long: `Serve a page with the packages, their states with the causes, and their revisions, and print its address. It
follows the cluster with your rights, and does not change it.

The page is served only on this machine, to one browser, until the command ends. More: docs/ui.md`,
		Example: `  kubectl package ui
  kubectl package ui --port 8443`,
		Args: command.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.port < 0 || c.port > 65535 {
				return command.UsageError(cmd, errors.New("--port must be between 0 and 65535"))
			}
			return c.run(cmd.Context())
		},
	}

	c.Connects(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().IntVar(&c.port, "port", 0, "listen on this `port` of the loopback address (default: a free one)")
	return []*cobra.Command{cmd}
}

// run prints the address of the page, and serves it until the command ends.
func (c *uiCommand) run(ctx context.Context) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	// Only the loopback address is used, so that no other machine reaches the page.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)))
	if err != nil {
		return fmt.Errorf("the page cannot be served: %w. Choose another --port, or leave it out for a free one", err)
	}

	s := newServer(ctx, cl, listener.Addr().String())
	s.notes = notesOf(ptr.Deref(c.Flags.Context, ""), ptr.Deref(c.Flags.KubeConfig, ""))
	c.WarnOfSilence(ctx, cl)
	fmt.Fprintln(c.Streams.ErrOut, "This address opens the page, in one browser. End it with Ctrl-C")
	// Standard output has only the address, so that it can be piped to a browser.
	fmt.Fprintln(c.Streams.Out, s.guard.Address())
	return s.serve(listener)
}

// notesOf describes the flags that the commands on the page lack. Without these flags, the commands
// mean another cluster than the page.
func notesOf(kubeContext, kubeconfig string) []string {
	var flags string
	for _, flag := range [][2]string{{"--context", kubeContext}, {"--kubeconfig", kubeconfig}} {
		if flag[1] != "" {
			flags += " " + flag[0] + "=" + flag[1]
		}
	}
	if flags == "" {
		return nil
	}
	return []string{"Commands that you copy from this page need the flags that it was opened with:" + flags}
}
