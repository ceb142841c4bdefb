package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/terminal"
)

var (
	errNotConfirmed = errors.New("nothing was changed")
	errNotAsked     = errors.New("nothing was changed: confirm it by --yes")
)

// asks reports whether there is a person to ask.
func asks(streams genericiooptions.IOStreams) bool {
	in, ok := streams.In.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && terminal.IsTerminal(streams.ErrOut)
}

// confirm asks a person a question; where there is none, it is an error that names the
// flag which answers it.
func confirm(streams genericiooptions.IOStreams, question string) error {
	if !asks(streams) {
		return errNotAsked
	}
	fmt.Fprint(streams.ErrOut, terminal.Line(question)+" [y/N] ")
	return answered(streams.In)
}

func answered(in io.Reader) error {
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}
