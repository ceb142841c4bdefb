package registry

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/test/signed"
)

// TestLongLists checks that the memory for a registry's lists is bounded, regardless of the number
// of entries. It measures the allocations of the whole process, so it must not run in parallel with
// other tests.
func TestLongLists(t *testing.T) {
	const most = 128 << 20 // of allocations, including garbage: the text of 4 MiB is copied as it arrives
	// full is a response of the maximum size, with as many entries as possible.
	full := func(format, entry string) []byte {
		n := (limits.ImageManifestBytes - 1000) / (len(entry) + 1)
		return fmt.Appendf(nil, format, bytes.TrimSuffix(bytes.Repeat([]byte(entry+","), n), []byte(",")))
	}

	const (
		index    = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}`
		manifest = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[%s]}`
	)
	digest := "sha256:" + strings.Repeat("1", 64)
	own := signed.NewPair(t)
	verify := func(p *Puller, ref string) error {
		_, err := p.Verify(context.Background(), ref, digest, &imagepolicy.Verification{Authorities: []imagepolicy.Authority{own.Authority()}}, "k")
		return err
	}

	pull := func(p *Puller, ref string) error {
		_, err := p.Pull(context.Background(), ref)
		return err
	}

	tags := func(p *Puller, ref string) error {
		_, err := p.Tags(context.Background(), ref)
		return err
	}

	for name, tc := range map[string]struct {
		path      string
		mediaType types.MediaType
		body      []byte
		use       func(*Puller, string) error
		text      string
		requests  int
	}{
		"referrers that can be signatures": {"/referrers/", types.OCIImageIndex, full(index, `{"digest":"`+digest+`"}`), verify, "more signatures were not read, because the limit is 100", 2},
		"attestations": {"/referrers/", types.OCIImageIndex, full(index, `{"digest":"`+digest+`","annotations":{"`+imagepolicy.PredicateAnnotation+`":"x"}}`), verify,
			fmt.Sprintf("attestations (%d), which are not signatures; at least 1 more", limits.RegistryEntries), 2},
		"referrers without digests": {"/referrers/", types.OCIImageIndex, full(index, "{}"), verify, "the list of referrers is not a JSON object of the expected form", 1},
		"signatures of cosign 2":    {".sig", types.OCIManifestSchema1, full(manifest, "{}"), verify, "the registry sent a list with more than 50000 entries", 1},
		"images of an index":        {"/manifests/v1", types.OCIImageIndex, full(index, "{}"), pull, "the registry sent a list with more than 50000 entries", 3},
		"layers of an image":        {"/manifests/v1", types.OCIManifestSchema1, full(manifest, "{}"), pull, "the registry sent a list with more than 50000 entries", 3},
		"tags":                      {"/tags/list", "application/json", full(`{"tags":[%s]}`, `""`), tags, "the repository has more than 50000 tags", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveReferrers(t, true)
			requests := 0
			body := tc.body
			s.set(func(w http.ResponseWriter, r *http.Request) bool {
				manifest := strings.HasPrefix(tc.path, "/manifests/") && strings.Contains(r.URL.Path, "/manifests/")
				if !manifest && !strings.Contains(r.URL.Path, tc.path) {
					return false
				}
				requests++
				w.Header().Set("Content-Type", string(tc.mediaType))
				w.Header().Set("Link", fmt.Sprintf(`<%s?page=%d>; rel="next"`, r.URL.Path, requests))
				_, _ = w.Write(body)
				return true
			})
			p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := tc.use(p, s.host+"/team/shop:v1")
			runtime.ReadMemStats(&after)
			t.Logf("%d requests, %d MiB", requests, (after.TotalAlloc-before.TotalAlloc)>>20)
			if err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%v, want …%s", err, tc.text)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > most || requests > tc.requests {
				t.Errorf("%d requests, %d MiB were allocated; the limit is %d MiB", requests, n>>20, most>>20)
			}
		})
	}
}
