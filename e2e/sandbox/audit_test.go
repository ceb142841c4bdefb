package sandbox

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/test/require"
)

const auditLines = `{"auditID":"1","stage":"ResponseStarted","requestURI":"/api/v1/pods?watch=true","verb":"watch","user":{"username":"manager"},"objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"code":200}}
{"auditID":"2","stage":"ResponseComplete","requestURI":"/apis/apps/v1/namespaces/shop/deployments/web?dryRun=All&fieldManager=m","verb":"patch","user":{"username":"manager","extra":{"authentication.kubernetes.io/credential-id":["JTI=a"]}},"impersonatedUser":{"username":"jane"},"userAgent":"ua","objectRef":{"resource":"deployments","namespace":"shop","name":"web","apiGroup":"apps","apiVersion":"v1","subresource":"scale"},"responseStatus":{"code":409},"requestReceivedTimestamp":"2026-01-02T03:04:05.000001Z","stageTimestamp":"2026-01-02T03:04:05.000251Z"}
{"auditID":"1","stage":"ResponseComplete","requestURI":"/api/v1/pods?watch=true","verb":"watch","user":{"username":"manager"},"objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"code":200}}
{"auditID":"3","stage":"ResponseComplete","requestURI":"/version?lockstep-audit-marker=X","verb":"get","user":{"username":"sandbox-admin"},"responseStatus":{"code":200}}
{"auditID":"4","stage":"RequestReceived","requestURI":"/api/v1/nodes","verb":"create","user":{"username":"kwok"}}
{"auditID":"4","stage":"ResponseComplete","requestURI":"/api/v1/nodes","verb":"create","user":{"username":"kwok"},"objectRef":{"resource":"nodes","apiVersion":"v1"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-01-02T03:04:05.000002Z"}
{"auditID":"5","stage":"ResponseComplete","requestURI":"/api/v1/no`

func auditFile(t *testing.T, content string) *Audit {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return &Audit{path: path}
}

func TestAuditEntryHasEveryField(t *testing.T) {
	t.Parallel()
	entries, _, err := auditFile(t, auditLines).read(0, []Filter{ByVerb("patch")})
	require.NoError(t, err)
	received := time.Date(2026, 1, 2, 3, 4, 5, 1000, time.UTC)
	want := []Entry{{
		ID: "2", Stage: "ResponseComplete", Verb: "patch", User: "manager", ImpersonatedUser: "jane", UserAgent: "ua", Credential: "JTI=a",
		RequestURI: "/apis/apps/v1/namespaces/shop/deployments/web?dryRun=All&fieldManager=m",
		Object:     ObjectRef{Resource: "deployments", Group: "apps", Version: "v1", Namespace: "shop", Name: "web", Subresource: "scale"},
		DryRun:     true, Code: 409, Received: received, Done: received.Add(250 * time.Microsecond),
	}}
	require.Equal(t, want, entries, "entries")
}

func TestAuditCountsEachRequestOnce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		filters []Filter
		want    []string
	}{
		"everything":    {"a watch counts at its start, markers and arrivals do not", nil, []string{"1", "2", "4"}},
		"one user":      {"impersonated requests are the impersonator's", []Filter{ByUser("manager")}, []string{"1", "2"}},
		"writes":        {"a dry run changes nothing", []Filter{Writes()}, []string{"4"}},
		"not a watch":   {"filters are combined with and", []Filter{ByUser("manager"), Not(ByVerb("watch"))}, []string{"2"}},
		"by group":      {"a resource is named with its group", []Filter{ByResource("deployments.apps", "nodes")}, []string{"2", "4"}},
		"without group": {"the core group has no name", []Filter{ByResource("deployments")}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entries, _, err := auditFile(t, auditLines).read(0, test.filters)
			require.NoError(t, err)
			var got []string
			for _, e := range entries {
				got = append(got, e.ID)
			}
			require.Equal(t, test.want, got, test.reason)
		})
	}
}

// A request is logged when it ends, which can be after the requests that it caused.
func TestAuditIsInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	entries, _, err := auditFile(t, `{"auditID":"effect","stage":"ResponseComplete","verb":"delete","requestReceivedTimestamp":"2026-01-02T03:04:05.000002Z"}
{"auditID":"cause","stage":"ResponseComplete","verb":"delete","requestReceivedTimestamp":"2026-01-02T03:04:05.000001Z"}
`).read(0, nil)
	if err != nil || len(entries) != 2 || entries[0].ID != "cause" {
		t.Errorf("got %+v, %v", entries, err)
	}
}

// A request that arrived before a mark, and is logged after it, does not count as after it unless
// it was held for long.
func TestAuditLeavesOutWhatArrivedBeforeTheMark(t *testing.T) {
	t.Parallel()
	const line = `{"auditID":%q,"stage":"ResponseComplete","requestURI":%q,"verb":"patch","requestReceivedTimestamp":%q,"stageTimestamp":%q}` + "\n"
	marked := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	audit := auditFile(t, "")
	log := func(id, uri string, received, done time.Duration) {
		file, err := os.OpenFile(audit.path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer file.Close()
		if _, err := fmt.Fprintf(file, line, id, uri, marked.Add(received).Format(time.RFC3339Nano), marked.Add(done).Format(time.RFC3339Nano)); err != nil {
			t.Error(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log("mark", r.RequestURI, 0, time.Microsecond)
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	audit.client = client.RESTClient()
	position, err := audit.Mark(t.Context())
	require.NoError(t, err)
	log("seen before", "/", -time.Millisecond, time.Second)
	log("after", "/", time.Microsecond, time.Millisecond)
	log("held", "/", -time.Millisecond, loggedWithin)
	for from, want := range map[Position][]string{position: {"held", "after"}, 0: {"seen before", "held", "after"}} {
		for name, read := range map[string]func() ([]Entry, error){
			"since":   func() ([]Entry, error) { return audit.Since(t.Context(), from) },
			"settled": func() ([]Entry, error) { return audit.Settled(t.Context(), from, auditPoll) },
		} {
			all, err := read()
			var got []string
			for _, e := range all {
				got = append(got, e.ID)
			}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s %d: %v (-want +got):\n%s", name, from, err, diff)
			}
		}
	}
}

func TestAuditContinuesAfterAnIncompleteLine(t *testing.T) {
	t.Parallel()
	audit := auditFile(t, auditLines)
	_, position, err := audit.read(0, nil)
	require.NoError(t, err)
	file, err := os.OpenFile(audit.path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer file.Close()
	if _, err := file.WriteString(`des","verb":"list","user":{"username":"late"}}` + "\n"); err != nil {
		t.Fatal(err)
	}
	entries, _, err := audit.read(position, nil)
	require.NoError(t, err)
	if len(entries) != 1 || entries[0].User != "late" {
		t.Errorf("got %+v, want the one request of late", entries)
	}
}

func TestAuditReportsADamagedLine(t *testing.T) {
	t.Parallel()
	if _, _, err := auditFile(t, "not JSON\n").read(0, nil); err == nil {
		t.Error("a damaged line gave no error")
	}
}

func TestAuditSettledGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := auditFile(t, auditLines).Settled(ctx, 0, time.Hour); err == nil {
		t.Error("a cancelled wait gave no error")
	}
}
