package rollout_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// openPages opens pages of kubectl package ui, as tabs of a browser do. It waits until each page
// has received data from its stream.
func openPages(t *testing.T, env *harness.Env, paths ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), harness.Binary(t, "kubectl-package"), "ui", "--no-browser")
	command.Env = append(os.Environ(), "KUBECONFIG="+env.Kubeconfig())
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	site, code, _ := strings.Cut(strings.TrimSpace(address), "#")
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	get := func(path string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site+path, nil)
		require.NoError(t, err)
		response, err := browser.Do(request)
		require.NoError(t, err)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", path, response.Status)
		}
		return response
	}
	welcome, err := browser.PostForm(site+"enter", url.Values{"code": {code}})
	require.NoError(t, err)
	body, err := io.ReadAll(http.MaxBytesReader(nil, welcome.Body, 1<<20))
	require.NoError(t, err)
	_ = welcome.Body.Close()
	base := regexp.MustCompile(`href="/([^/"]+/)">`).FindSubmatch(body)
	if base == nil {
		t.Fatalf("not let in: %s", welcome.Status)
	}
	for _, path := range paths {
		page := get(string(base[1]) + path)
		_, err := io.Copy(io.Discard, page.Body)
		require.NoError(t, err)
		_ = page.Body.Close()
		stream := get(string(base[1]) + path + "/stream") // it ends with the test
		if line, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "event: fragment") {
			t.Fatalf("%s: %q, %v", path, line, err)
		}
	}
}

// byPlugin accepts the requests of kubectl package.
func byPlugin(e sandbox.Entry) bool { return strings.HasPrefix(e.UserAgent, "kubectl-package/") }
