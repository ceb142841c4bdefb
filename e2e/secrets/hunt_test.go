package secrets_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/test/require"
)

// needle is a value in every form that is looked for.
type needle struct {
	value string
	forms map[string][]byte
}

func newNeedle(value string) needle {
	n := needle{value: value, forms: map[string][]byte{
		"raw": []byte(value), "hex": []byte(hex.EncodeToString([]byte(value))), "upper hex": []byte(strings.ToUpper(hex.EncodeToString([]byte(value)))),
		"escaped for URLs": []byte(url.QueryEscape(value)),
	}}
	for offset := range 3 {
		for name, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "URL base64": base64.RawURLEncoding} {
			text := encoding.EncodeToString(append(make([]byte, offset), value...))
			// Omit characters that also depend on the bytes before and after the value.
			n.forms[fmt.Sprintf("%s at offset %d", name, offset)] = []byte(text[(offset*8+5)/6 : (offset+len(value))*8/6])
		}
	}
	return n
}

// in returns the encodings of the value that a text contains.
func (n needle) in(text []byte) []string {
	var found []string
	for _, form := range slices.Sorted(maps.Keys(n.forms)) {
		if bytes.Contains(text, n.forms[form]) {
			found = append(found, form)
		}
	}
	return found
}

// haystack contains all texts that users can read, by location.
type haystack struct {
	t    *testing.T
	seen map[string]int
}

// look fails the test if a text contains a value.
func (h *haystack) look(kind, where string, text []byte, needles []needle) {
	h.t.Helper()
	h.seen[kind] += len(text)
	for _, n := range needles {
		if found := n.in(text); len(found) > 0 {
			at := max(0, bytes.Index(text, n.forms[found[0]])-300)
			h.t.Errorf("%s %s has the value as %s: …%.700s", kind, where, strings.Join(found, ", "), text[at:])
		}
	}
}

// hunt looks for the values everywhere. It returns how many bytes it has searched, by
// kind, so that a test can verify that there was something.
func (l *lives) hunt(t *testing.T, needles ...needle) map[string]int {
	t.Helper()
	h := &haystack{t: t, seen: map[string]int{}}
	inSecrets := 0
	for resource, objects := range l.all(t) {
		for name, text := range objects {
			if resource != "secrets" {
				h.look("object", resource+" "+name, text, needles)
				continue
			}
			for _, n := range needles {
				inSecrets += len(n.in(text))
			}
		}
	}
	h.look("audit log", "", l.audit(t), needles)
	for i, manager := range l.managers {
		h.look("log", fmt.Sprint("of manager ", i), []byte(manager.Log()), needles)
	}
	h.look("metrics", "", l.scrape(t), needles)
	require.NoError(t, filepath.WalkDir(l.cache, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		h.look("cache", path, content, needles)
		return err
	}))
	for command, output := range l.commands(t) {
		h.look("output", command, output, needles)
	}
	h.seen["found in Secrets"] = inSecrets
	return h.seen
}

// all returns every object of every kind as JSON, in the version that the API
// server prefers, by resource and name.
func (l *lives) all(t *testing.T) map[string]map[string][]byte {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(l.env.Config())
	require.NoError(t, err)
	lists, err := client.ServerPreferredResources()
	require.NoError(t, err)
	config := l.env.Config()
	config.WarningHandler = rest.NoWarnings{}
	reader, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	all := map[string]map[string][]byte{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || strings.Contains(resource.Name, "/") {
				continue
			}
			found, err := reader.Resource(gv.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			objects := map[string][]byte{}
			for i := range found.Items {
				text, err := found.Items[i].MarshalJSON()
				require.NoError(t, err)
				objects[found.Items[i].GetNamespace()+"/"+found.Items[i].GetName()] = text
			}
			name := resource.Name
			if gv.Group != "" {
				name += "." + gv.Group
			}
			all[name] = objects
		}
	}
	return all
}

// audit returns the audit log without the statuses in answers to requests for Secrets. A
// webhook's message can quote the Secret there, which the engine cannot prevent.
func (l *lives) audit(t *testing.T) []byte {
	t.Helper()
	log, err := os.ReadFile(l.env.AuditLog())
	require.NoError(t, err)
	var text []byte
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte(`"resource":"secrets"`)) {
			var event struct {
				ObjectRef struct{ Resource string }
				Rest      map[string]any `json:"-"`
			}
			require.NoError(t, json.Unmarshal(line, &event))
			require.NoError(t, json.Unmarshal(line, &event.Rest))
			if event.ObjectRef.Resource == "secrets" {
				delete(event.Rest, "responseStatus")
				line, err = json.Marshal(event.Rest)
				require.NoError(t, err)
			}
		}
		text = append(text, line...)
	}
	return text
}

// scrape reads the manager's metrics.
func (l *lives) scrape(t *testing.T) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.metrics+"/metrics", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return body
}

// TestNeedle: a search that finds nothing would prove nothing.
func TestNeedle(t *testing.T) {
	t.Parallel()
	n := newNeedle("K3y-of.24 bytes/long+val")
	if len(n.value) != 24 {
		t.Fatalf("%d bytes", len(n.value))
	}
	for before := range 4 {
		for after := range 4 {
			text := []byte(strings.Repeat("x", before) + n.value + strings.Repeat("y", after))
			for name, encoded := range map[string]string{
				"raw": string(text), "base64": base64.StdEncoding.EncodeToString(text), "URL base64": base64.RawURLEncoding.EncodeToString(text),
				"hex": hex.EncodeToString(text), "hex of hex": "", "URL": url.QueryEscape(string(text)),
			} {
				if got := len(n.in([]byte("before "+encoded+" after"))) > 0; got != (encoded != "") {
					t.Errorf("%s with %d bytes before and %d after: found %t", name, before, after, got)
				}
			}
		}
	}
	if got := n.in([]byte("K3y-of.24 bytes/long+VAL")); len(got) > 0 {
		t.Errorf("something else is found as %v", got)
	}
}
