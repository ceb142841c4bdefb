package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// confirm asks whether to go on: a person at a terminal, and nobody else, who has to say
// so by --yes. what is a sentence that tells what would happen.
func confirm(streams genericiooptions.IOStreams, what string) error {
	in, ok := streams.In.(*os.File)
	if !ok || !terminal.IsTerminal(in) || !terminal.IsTerminal(streams.ErrOut) {
		return fmt.Errorf("%s. Add --yes if that is meant", what)
	}
	return ask(in, streams.ErrOut, what)
}

func ask(in io.Reader, out io.Writer, what string) error {
	fmt.Fprint(out, terminal.Text(what)+". Go on? [y/N] ")
	answer, _ := bufio.NewReader(in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return fmt.Errorf("nothing was changed")
}

// otherPackage tells of an image that is meant for an installed package that it may be
// another one than was thought of: of another repository, or of no tag at all. It is
// empty where it is just another release.
func otherPackage(t progress.Target, old, wanted string) string {
	was, err := name.ParseReference(old)
	is, err2 := name.ParseReference(wanted)
	switch {
	case err2 != nil || err == nil && was.Name() == is.Name():
		return ""
	case err != nil:
		return fmt.Sprintf("%s is not installed from an image that it names, and would be from %s", t, is.Name())
	case was.Context().Name() != is.Context().Name():
		return fmt.Sprintf("%s is installed from %s and would change to another repository, %s", t, old, is.Name())
	}
	if base := wanted[strings.LastIndex(wanted, "/")+1:]; !strings.ContainsAny(base, ":@") {
		return fmt.Sprintf("%s is installed from %s and would change to %s, because %s names no tag", t, old, is.Name(), wanted)
	}
	return ""
}
