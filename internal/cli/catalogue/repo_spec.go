package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/desired"
)

// repoSpecFlags are the fields of a repository.
type repoSpecFlags struct {
	image, http, git string
	ref              string
	secrets          []string
	tags             string
	prereleases      desired.PrereleaseFlag
	given            func(flag string) bool
}

// add adds the flags to a command.
func (f *repoSpecFlags) add(cmd *cobra.Command) {
	f.given = cmd.Flags().Changed
	flags := cmd.Flags()
	flags.StringVar(&f.image, "url", "", "fetch the OCI image with this `reference`, the same as IMAGE")
	flags.StringVar(&f.http, "http", "", "fetch this `URL` of a tar archive, with or without gzip, or of a YAML file")
	flags.StringVar(&f.git, "git", "", "fetch the git repository at this `URL`")
	flags.StringVar(&f.ref, "ref", "", "fetch this branch, tag or commit of the git repository instead of its default branch")
	flags.StringArrayVar(&f.secrets, "secret-ref", nil, "use the credentials in the Secret with this `name`; repeatable for pull secrets of an image")
	flags.StringVar(&f.tags, "tag-constraint", "", "take the highest tag of the image or git repository that fits, such as '>=1.2, <2'")
	f.prereleases.Add(cmd, "include tags with a prerelease")
}

// sourceNames are the flags that name the source of a repository.
var sourceNames = []string{"url", "http", "git"}

// check returns an error of usage.
func (f *repoSpecFlags) check() error {
	var given []string
	for _, name := range sourceNames {
		if f.given(name) {
			given = append(given, "--"+name)
		}
	}

	if len(given) > 1 {
		return fmt.Errorf("%s contradict each other: choose one", strings.Join(given, " and "))
	}

	for _, address := range []string{f.http, f.git} {
		// Every user with rights on repositories can read the address in the object. The user name
		// of SSH is not secret.
		if u, err := url.Parse(address); err == nil && u.User != nil {
			if _, password := u.User.Password(); password || address == f.http {
				return errors.New("the URL has credentials: put them into a Secret, and name it with --secret-ref")
			}
		}
	}

	if f.image != "" {
		if _, err := name.ParseReference(f.image); err != nil {
			return fmt.Errorf("%q is not a valid image: write it as host/path:tag or host/path@sha256:…", f.image)
		}
	}

	_, err := versions.ParseConstraint(f.tags)
	return err
}

// apply changes a spec according to the flags.
func (f *repoSpecFlags) apply(spec *corev1alpha1.PackageRepositorySpec) error {
	f.source(&spec.Source)
	if f.given("ref") {
		if spec.Source.Git == nil {
			return errors.New("--ref is for --git")
		}
		spec.Source.Git.Ref = f.ref
	}

	return cmp.Or(f.setSecrets(&spec.Source), f.setTags(&spec.Source))
}

// source replaces the source if a flag names one. The other fields of the source stay if its kind
// does.
func (f *repoSpecFlags) source(s *corev1alpha1.RepositorySource) {
	switch {
	case f.given("url") || f.image != "":
		image := cmp.Or(s.Image, &corev1alpha1.RepositoryImageSource{})
		image.Ref = f.image
		*s = corev1alpha1.RepositorySource{Image: image}
	case f.given("http"):
		file := cmp.Or(s.HTTP, &corev1alpha1.RepositoryHTTPSource{})
		file.URL, file.SHA256 = f.http, "" // they belong to the other file
		*s = corev1alpha1.RepositorySource{HTTP: file}
	case f.given("git"):
		git := cmp.Or(s.Git, &corev1alpha1.RepositoryGitSource{})
		git.URL = f.git
		*s = corev1alpha1.RepositorySource{Git: git}
	}
}

// setSecrets sets the Secrets with credentials. Only an image can have several.
func (f *repoSpecFlags) setSecrets(s *corev1alpha1.RepositorySource) error {
	if !f.given("secret-ref") {
		return nil
	}
	var refs []corev1alpha1.LocalSecretReference
	for _, name := range f.secrets {
		if name != "" { // --secret-ref "" takes it away
			refs = append(refs, corev1alpha1.LocalSecretReference{Name: name})
		}
	}

	var first *corev1alpha1.LocalSecretReference
	if len(refs) > 0 {
		first = &refs[0]
	}

	switch {
	case s.Image != nil:
		s.Image.ImagePullSecrets = refs
	case len(refs) > 1:
		return errors.New("--secret-ref can be given once, except for an image")
	case s.HTTP != nil:
		s.HTTP.SecretRef = first
	case s.Git != nil:
		s.Git.SecretRef = first
	default:
		return errors.New("--secret-ref is for an image, --http and --git")
	}

	return nil
}

// setTags sets the selection of tags. Files on a web server have no tags.
func (f *repoSpecFlags) setTags(s *corev1alpha1.RepositorySource) error {
	if !f.given("tag-constraint") && !f.prereleases.Given() {
		return nil
	}
	selection := &corev1alpha1.VersionSelection{Version: f.tags, Prereleases: f.prereleases.Value()}
	switch {
	case s.Image != nil:
		s.Image.TagSelection = selection
	case s.Git != nil:
		s.Git.TagSelection = selection
	default:
		return errors.New("--tag-constraint and --prereleases are for an image and --git")
	}
	return nil
}
