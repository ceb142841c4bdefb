package cli

import (
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// confirmOther asks before an installed package becomes one that may be another.
func (c *installCommand) confirmOther(t progress.Target, old *corev1alpha1.PackageSpec, wanted string) error {
	what := otherPackage(t, old.Image, wanted)
	if what == "" || c.yes {
		return nil
	}
	fmt.Fprintln(c.streams.ErrOut, terminal.Line(what))
	return confirm(c.streams, "Change it all the same?")
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
