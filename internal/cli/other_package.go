package cli

import (
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// confirmImage asks before a change to an image that may be of another package.
func (c *installCommand) confirmImage(t progress.Target, old *corev1alpha1.PackageSpec, wanted string) error {
	what := unexpectedImage(t, old.Image, wanted)
	if what == "" || c.yes {
		return nil
	}
	fmt.Fprintln(c.streams.ErrOut, terminal.Line(what))
	return confirm(c.streams, "Change it all the same?")
}

// unexpectedImage describes an image that may be of another package than the installed
// one: from another repository, or without a tag. It is empty for another release.
func unexpectedImage(t progress.Target, old, wanted string) string {
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
