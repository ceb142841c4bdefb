package fetch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/test/require"
)

// checkError fails unless err is of this package and the given class, and contains the texts.
func checkError(t *testing.T, err error, permanent bool, texts ...string) {
	t.Helper()
	var own *Error
	if !errors.As(err, &own) {
		t.Errorf("%T: %v", err, err)
		return
	}
	if own.Permanent != permanent || own.Reason() != corev1alpha1.ReasonFetchFailed {
		t.Errorf("permanent: %v, reason %s: %v", own.Permanent, own.Reason(), err)
	}

	for _, text := range texts {
		require.Contains(t, err.Error(), text)
	}
}

func inlineSource(files map[string]string, from ...corev1alpha1.RepositoryFilesSource) Source {
	return Source{Spec: corev1alpha1.RepositorySource{Inline: &corev1alpha1.RepositoryInlineSource{Files: files, FilesFrom: from}}}
}

func TestInline(t *testing.T) {
	t.Parallel()
	f := New(Options{})
	s := inlineSource(map[string]string{"a/b.yaml": "ab"},
		corev1alpha1.RepositoryFilesSource{SecretRef: &corev1alpha1.LocalSecretReference{Name: "s"}},
		corev1alpha1.RepositoryFilesSource{ConfigMapRef: &corev1alpha1.LocalConfigMapReference{Name: "c"}})
	s.Secrets = map[string]map[string][]byte{"s": {"s.yaml": []byte("s"), "note": []byte("n")}}
	s.ConfigMaps = map[string]map[string]string{"c": {"c.yml": "c"}}
	first := fetched(t, f, s, "")
	require.Equal(t, map[string]string{"a/b.yaml": "ab", "s.yaml": "s", "c.yml": "c"}, text(first.Files))
	// The hash of a Secret would end up in a status.
	again := fetched(t, f, s, first.Validator)
	for _, r := range []*Result{first, again} {
		if r.NotModified || r.Digest+r.Revision != "" || strings.TrimPrefix(r.Validator, fingerprintOf(s.Spec)) != "" || !maps.Equal(r.FromSecrets, map[string]bool{"s.yaml": true}) {
			t.Errorf("%+v", r)
		}
	}

	s.Spec.Inline.FilesFrom = s.Spec.Inline.FilesFrom[1:]
	first = fetched(t, f, s, "")
	if r := fetched(t, f, s, first.Validator); !r.NotModified {
		t.Errorf("%+v", r)
	}

	s.ConfigMaps["c"]["c.yml"] = "d"
	if r := fetched(t, f, s, first.Validator); r.NotModified || r.Digest == first.Digest {
		t.Errorf("%+v", r)
	}
}

func TestInlineErrors(t *testing.T) {
	t.Parallel()
	secret := corev1alpha1.RepositoryFilesSource{SecretRef: &corev1alpha1.LocalSecretReference{Name: "s"}}
	for name, test := range map[string]struct {
		source Source
		text   string
	}{
		"out of the source": {inlineSource(map[string]string{"../a.yaml": ""}), `inline.files: the path "../a.yaml" is not relative and clean`},
		"absolute":          {inlineSource(map[string]string{"/a.yaml": ""}), "is not relative and clean"},
		"not clean":         {inlineSource(map[string]string{"a//b.yaml": ""}), "is not relative and clean"},
		"control character": {inlineSource(map[string]string{"a\x1b.yaml": ""}), "has a control character"},
		"no YAML":           {inlineSource(map[string]string{"README.md": ""}), "does not end in .yaml, .yml or .json"},
		"no Secret":         {inlineSource(nil, secret), `inline.filesFrom[0]: there is no Secret "s". Create it`},
		"twice": {Source{
			Spec:    inlineSource(map[string]string{"a.yaml": ""}, secret).Spec,
			Secrets: map[string]map[string][]byte{"s": {"a.yaml": []byte("geheim")}},
		}, `inline.filesFrom[0]: the file "a.yaml" is listed twice`},
		"too large": {inlineSource(map[string]string{"a.yaml": strings.Repeat("x", limits.RepositoryBytes+1)}), "the files have more than 67108864 bytes"},
		"empty":     {Source{}, "the source is empty"},
	} {
		_, err := New(Options{}).Fetch(t.Context(), test.source, "")
		checkError(t, err, true, test.text)
		if strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The digest depends only on paths and contents.
func TestDigest(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i, files := range []map[string][]byte{
		{}, {"a.yaml": nil}, {"a.yaml": []byte("b")}, {"a.yamlb": nil}, {"a.yaml": []byte("b"), "b": nil}, {"a.yaml": nil, "b": []byte("b")},
	} {
		d := digestOf(files)
		if other, ok := seen[d]; ok {
			t.Errorf("%d and %d have the same digest", i, other)
		}
		seen[d] = i
	}
}

func TestStatic(t *testing.T) {
	t.Parallel()
	commit := strings.Repeat("a", 40)
	for _, test := range []struct {
		source corev1alpha1.RepositorySource
		want   bool
	}{
		{corev1alpha1.RepositorySource{HTTP: &corev1alpha1.RepositoryHTTPSource{}}, false},
		{corev1alpha1.RepositorySource{HTTP: &corev1alpha1.RepositoryHTTPSource{SHA256: strings.Repeat("0", 64)}}, true},
		{corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{Ref: "main"}}, false},
		{corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{Ref: commit}}, true},
		{corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{Ref: commit, TagSelection: &corev1alpha1.VersionSelection{}}}, false},
		{inlineSource(nil).Spec, true},
		{inlineSource(nil, corev1alpha1.RepositoryFilesSource{}).Spec, false},
		{corev1alpha1.RepositorySource{}, false},
	} {
		require.Equal(t, test.want, Static(test.source), fmt.Sprintf("%+v", test.source))
	}
}

// A large source is read once the caller has room for it, and refused beyond the Fetcher's limit.
func TestLargeContentIsAdmitted(t *testing.T) {
	t.Parallel()
	small, large, tooLarge := "a: b\n", strings.Repeat("x", limits.SmallPackageBytes+1), strings.Repeat("x", 3<<20)
	images, git := serveImages(t), newGit(t)
	puller, err := registry.NewPuller(registry.Options{InsecureRegistries: []string{images.host}})
	require.NoError(t, err)
	f := New(Options{Puller: puller, Policy: outbound.Policy{Local: true}, Bytes: 2 << 20})
	for kind, source := range map[string]func(text string) Source{
		"archive": func(text string) Source {
			return webSource(serveBytes(t, gzipped(tarOf(t, map[string]string{"a.yaml": text}))))
		},
		"image": func(text string) Source {
			images.push(t, "repo:v1", map[string]string{"a.yaml": text})
			return imageSource(images.host + "/repo:v1")
		},
		"git": func(text string) Source {
			git.Commit(map[string]string{"a.yaml": text})
			return git.source("main")
		},
		"file": func(text string) Source { return webSource(serveBytes(t, gzipped([]byte(text)))) },
	} {
		for _, text := range []string{small, large, tooLarge} {
			s, admitted := source(text), 0
			s.Admit = func() error { admitted++; return nil }
			_, err := f.Fetch(t.Context(), s, "")
			want := 1
			if text == small {
				want = 0
			}
			if admitted != want || (err != nil) != (text == tooLarge) {
				t.Errorf("%s of %d bytes: admitted %d times, %v", kind, len(text), admitted, err)
			}
		}
		s := source(large + "\n")
		s.Admit = func() error { return context.Canceled }
		if _, err := f.Fetch(t.Context(), s, ""); err == nil {
			t.Errorf("%s: it is read without room", kind)
		}
	}
}

// All downloads together stay within the limit of the disk, those in a namespace within its share,
// and all of it is released.
func TestDownloadsShareTheDisk(t *testing.T) {
	t.Parallel()
	f := local()
	f.disk = queueing.NewSemaphore(5*reservedBytes, 2*reservedBytes)
	source := webSource(serveBytes(t, []byte("kind: a-long-name\n")))
	source.Namespace = "team"
	slow, err := f.temporaryFile("team")
	require.NoError(t, err)
	_, err = slow.Write([]byte("x"))
	require.NoError(t, err)
	_, err = f.Fetch(t.Context(), source, "")
	checkError(t, err, false, "it does not fit: all downloads together can have 1006632960 bytes, and one namespace's 536870912. It is repeated later.")
	// A pack is copied: the file's own ReadFrom would skip the account.
	g := newGit(t)
	g.Commit(map[string]string{"a.yaml": "a"})
	pack := g.source("main")
	pack.Namespace = "team"
	_, err = f.Fetch(t.Context(), pack, "")
	checkError(t, err, false, "it does not fit: all downloads together")
	source.Namespace = "other"
	fetched(t, f, source, "")
	require.NoError(t, slow.Close())
	_ = slow.Close()
	fetched(t, f, pack, "")
	if used, _ := f.disk.Depth(); used != 0 {
		t.Errorf("%d bytes stay reserved", used)
	}
}
