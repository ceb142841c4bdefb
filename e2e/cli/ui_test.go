package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/ui"
	"lockstep.run/lockstep/test/require"
)

// The page of a cluster requires the code. It updates when a package becomes available, and shows
// why a package does not, and the changes between two revisions. At rest, an open page only watches.
// It ends with the command.
func TestPage(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "page")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address, ended := startPage(ctx, t, env)
	p := enter(t, address)
	client, site, base, code, get := p.client, p.site, p.base, p.code, p.get
	if again, err := http.PostForm(site+"enter", url.Values{"code": {code}}); err != nil || again.StatusCode != http.StatusForbidden {
		t.Errorf("the code is used twice: %v, %v", again, err)
	}
	if response, err := http.Get(site + base + "packages"); err != nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("without the cookie: %v, %v", response, err)
	}

	lines := follow(ctx, t, client, site+base+"packages/stream?namespace=page")
	first := env.Push(t, "page:1", release("one", 0))
	ok(t, env, "install", first, "notes", "-n", "page", "--wait=false")
	await(t, lines, `data-key=\"package page/notes\" data-state=\"available\"`, `data-key="package page/notes" data-state="available"`)
	ok(t, env, "install", env.Push(t, "page:2", release("two", 0)), "notes", "-n", "page")
	for path, texts := range map[string][]string{
		"":                  {"Package source image changed.", "ConfigMap notes"},
		"/diff?from=1&to=2": {"data.value", "&#34;two&#34;"},
	} {
		// The page can lag, because it shows the cache of its watches.
		harness.Eventually(t, harness.Patience, "the page"+path, func(context.Context) error {
			got := get(base + "packages/page/notes" + path)
			for _, text := range texts {
				if !strings.Contains(got, text) {
					return fmt.Errorf("it lacks %q: %s", text, got)
				}
			}
			return nil
		})
	}
	audit, err := env.Audit()
	require.NoError(t, err)
	atRest := []sandbox.Filter{sandbox.ByUser(pageUser), sandbox.Not(sandbox.ByVerb("watch"))}
	_, err = audit.Settled(t.Context(), 0, time.Second, atRest...)
	require.NoError(t, err)
	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)
	if asked, err := audit.Settled(t.Context(), mark, time.Second, atRest...); err != nil || len(asked) > 0 {
		t.Errorf("at rest:%s, %v", harness.Lines(asked), err)
	}
	stuck := follow(ctx, t, client, site+base+"packages/stream?namespace=page&state=ImagePullError")
	ok(t, env, "install", env.Registry()+"/page:none", "missing", "-n", "page", "--wait=false")
	await(t, stuck, "package page/missing")
	detail := follow(ctx, t, client, site+base+"packages/page/missing/stream")
	await(t, detail, "kubectl package retry package/missing -n page")

	cancel()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("the command ended with %d", code)
		}
	case <-time.After(harness.Patience):
		t.Fatal("the command does not end")
	}
	if _, err := client.Get(site); err == nil {
		t.Error("the page is served after the command")
	}
}

// entered is a browser that the page has let in.
type entered struct {
	t                *testing.T
	client           *http.Client
	site, base, code string
}

// enter exchanges the code of an address.
func enter(t *testing.T, address string) *entered {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	p := &entered{t: t, client: &http.Client{Jar: jar}}
	p.site, p.code, _ = strings.Cut(address, "#")
	welcome, err := p.client.PostForm(p.site+"enter", url.Values{"code": {p.code}})
	require.NoError(t, err)
	body := read(t, welcome)
	found := regexp.MustCompile(`href="/([^/"]+/)">`).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("not let in: %s %s", welcome.Status, body)
	}
	p.base = found[1]
	return p
}

func (p *entered) get(path string) string {
	p.t.Helper()
	response, err := p.client.Get(p.site + path)
	require.NoError(p.t, err)
	return read(p.t, response)
}

// read returns the body of an answer of the page.
func read(t *testing.T, response *http.Response) string {
	t.Helper()
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(http.MaxBytesReader(nil, response.Body, 16<<20))
	require.NoError(t, err)
	return string(body)
}

// pageUser is the user of the page.
const pageUser = "reader-of-the-page"

// startPage starts the command, and returns the address that it prints and its exit code.
func startPage(ctx context.Context, t *testing.T, env *harness.Env) (address string, ended <-chan int) {
	t.Helper()
	kubeconfig, err := env.UserKubeconfig(pageUser, "system:masters")
	require.NoError(t, err)
	out, in := io.Pipe()
	codes := make(chan int, 1)
	var errOut bytes.Buffer
	var command sync.WaitGroup
	t.Cleanup(func() {
		_ = out.Close()
		command.Wait()
	})
	command.Go(func() {
		code := cli.Run(ctx, []string{"ui", "--kubeconfig", kubeconfig}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: in, ErrOut: &errOut}, ui.Commands)
		_ = in.CloseWithError(fmt.Errorf("the command ended: %s", errOut.String()))
		codes <- code
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line), codes
}

// follow returns the lines of a stream.
func follow(ctx context.Context, t *testing.T, client *http.Client, address string) <-chan string {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	require.NoError(t, err)
	response, err := client.Do(r)
	require.NoError(t, err)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", address, response.Status)
	}
	lines := make(chan string, 1000)
	var stream sync.WaitGroup
	t.Cleanup(stream.Wait)
	stream.Go(func() {
		defer close(lines)
		defer func() { _ = response.Body.Close() }()
		scan := bufio.NewScanner(response.Body)
		scan.Buffer(nil, 4<<20)
		for scan.Scan() {
			select {
			case lines <- strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(scan.Text()):
			case <-ctx.Done():
				return
			}
		}
	})
	return lines
}

// await waits for a line with one of some texts.
func await(t *testing.T, lines <-chan string, texts ...string) {
	t.Helper()
	for end := time.After(harness.Patience); ; {
		select {
		case line, more := <-lines:
			if !more {
				t.Fatalf("the stream ended before it had %q", texts)
			}
			for _, text := range texts {
				if strings.Contains(line, text) {
					return
				}
			}
		case <-end:
			t.Fatalf("the stream never had %q", texts)
		}
	}
}
