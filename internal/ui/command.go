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
	"lockstep.run/lockstep/internal/cli/terminal"
)

// uiCommand is kubectl package ui.
type uiCommand struct {
	command.Command
	port      int
	noBrowser bool
	// open shows a file in the browser of the user.
	open func(ctx context.Context, file string) error
}

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	c := &uiCommand{Command: on, open: openFile}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the installed packages as a page in the browser",
		Long: `Show packages, their states with the causes, and their revisions as a page in the browser. It follows the
cluster with your rights, and does not change it.

The page is served only on this machine, to one browser, until the command ends. More: docs/ui.md`,
		Example: `  kubectl package ui
  kubectl package ui --no-browser --port 8443`,
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
	cmd.Flags().BoolVar(&c.noBrowser, "no-browser", false, "print the address instead of opening a browser")
	return []*cobra.Command{cmd}
}

// run serves the page until the command ends. The server runs before the browser opens.
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

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	host := listener.Addr().String()
	s := newServer(ctx, cl, host, func() {
		fmt.Fprintln(c.Streams.ErrOut, "Warning: too many wrong codes were sent to the page, so it accepts no code any more. Another user or program of this machine tries to open it: "+
			"find out which program it is, and start this command again")
	})

	s.notes = notesOf(ptr.Deref(c.Flags.Context, ""), ptr.Deref(c.Flags.KubeConfig, ""))
	c.WarnOfSilence(ctx, cl)
	served := make(chan error, 1)
	go func() { served <- s.serve(listener) }()
	remove, err := c.announce(ctx, host, s.guard.Address())
	defer remove()
	if err != nil {
		return err
	}

	return <-served
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

// announce opens the browser, or prints the address that opens the page. remove deletes the file
// that opened the browser.
func (c *uiCommand) announce(ctx context.Context, host, address string) (remove func(), err error) {
	remove = func() {}
	if !c.noBrowser {
		opened, err := openThroughFile(ctx, address, c.open)
		if err == nil {
			fmt.Fprintln(c.Streams.ErrOut, "The page is at http://"+host+"/, and was opened in a browser. End it with Ctrl-C. "+
				"If the browser shows no page, for example because its sandbox cannot read the file of the address: --no-browser")
			return opened, nil
		}
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: no browser was opened: "+err.Error()))
	}

	fmt.Fprintln(c.Streams.ErrOut, "This address opens the page, in one browser. End it with Ctrl-C")
	_, err = fmt.Fprintln(c.Streams.Out, address)
	return remove, err
}
