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
	errNotConfirmed   = errors.New("nothing was changed")
	errNotInteractive = errors.New("nothing was changed: confirm it by --yes")
)

func interactive(streams genericiooptions.IOStreams) bool {
	in, ok := streams.In.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && terminal.IsTerminal(streams.ErrOut)
}

// confirm prompts on a terminal; elsewhere its error names the flag to set.
func confirm(streams genericiooptions.IOStreams, question string) error {
	if !interactive(streams) {
		return errNotInteractive
	}
	fmt.Fprint(streams.ErrOut, terminal.Line(question)+" [y/N] ")
	return readAnswer(streams.In)
}

func readAnswer(in io.Reader) error {
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
