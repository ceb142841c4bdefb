package guard_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/ui/guard"
	"lockstep.run/lockstep/test/require"
)

const secret = "what is inside"

type door struct{}

func (door) Enter(w http.ResponseWriter, status int, _ guard.Outcome) { w.WriteHeader(status) }
func (door) Welcome(w http.ResponseWriter, to string)                 { _, _ = io.WriteString(w, to) }
func (door) Refuse(w http.ResponseWriter, status int, why string)     { http.Error(w, why, status) }
func (door) Assets() http.Handler                                     { return http.NotFoundHandler() }

const host = "127.0.0.1:4711"

type site struct {
	*guard.Guard
	cookie *http.Cookie
}

func newSite() *site {
	s := &site{}
	s.Guard = guard.New(host, door{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, secret+" "+r.URL.Path) }))
	return s
}

func (s *site) do(r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func request(method, path string, header ...string) *http.Request {
	r := httptest.NewRequest(method, "http://"+host+path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func (s *site) enter(code string, header ...string) *http.Response {
	r := request(http.MethodPost, "/enter", header...)
	r.Body = io.NopCloser(strings.NewReader(url.Values{"code": {code}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.do(r)
}

// signIn exchanges the code, as the page does.
func (s *site) signIn(t *testing.T) {
	t.Helper()
	w := s.enter(s.Code(), "Sec-Fetch-Site", "same-origin", "Origin", "null")
	if w.StatusCode != http.StatusOK || len(w.Cookies()) != 1 {
		t.Fatalf("the code is not accepted: %s", w.Status)
	}
	s.cookie = w.Cookies()[0]
}

func (s *site) inside(path string, header ...string) *http.Request {
	r := request(http.MethodGet, s.Base()+path, header...)
	r.AddCookie(s.cookie)
	return r
}

func body(t *testing.T, w *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	return string(b)
}

// The browser with the code signs in once. No other server gets its cookie, and no script can read
// it.
func TestSignIn(t *testing.T) {
	t.Parallel()
	s := newSite()
	s.signIn(t)
	if c := s.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != s.Base() || len(s.Base()) < 20 || c.Domain != "" {
		t.Errorf("cookie %s", c)
	}
	require.Equal(t, secret+" /packages", body(t, s.do(s.inside("packages", "Sec-Fetch-Site", "same-origin"))), "inside there")
	if other := newSite(); other.Code() == s.Code() || other.Base() == s.Base() || strings.Contains(s.cookie.Value, s.Code()) {
		t.Error("a secret is used twice")
	}
	other := newSite()
	other.signIn(t)
	if other.cookie.Name == s.cookie.Name {
		t.Error("two pages use one cookie")
	}
	if !strings.HasPrefix(s.Address(), "http://"+host+"/#") {
		t.Errorf("the code is not in the fragment: %s", s.Address())
	}
}

// Browsers leave out the default port.
func TestDefaultPort(t *testing.T) {
	t.Parallel()
	g := guard.New("127.0.0.1:80", door{}, http.NotFoundHandler())
	for host, want := range map[string]int{"127.0.0.1": http.StatusOK, "127.0.0.1:8080": http.StatusMisdirectedRequest, "localhost": http.StatusMisdirectedRequest} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "http://"+host+"/enter", strings.NewReader(url.Values{"code": {g.Code()}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://"+host)
		if g.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d, want %d", host, w.Code, want)
		}
	}
}

// Other clients' requests get no content.
func TestAttacks(t *testing.T) {
	t.Parallel()
	s := newSite()
	s.signIn(t)
	with := func(r *http.Request, change func(*http.Request)) *http.Request {
		change(r)
		return r
	}
	for name, test := range map[string]struct {
		request *http.Request
		status  int
	}{
		"a name that leads here":                {with(s.inside("packages", "Sec-Fetch-Site", "same-origin"), func(r *http.Request) { r.Host = "evil.example:4711" }), http.StatusMisdirectedRequest},
		"localhost":                             {with(s.inside("packages"), func(r *http.Request) { r.Host = "localhost:4711" }), http.StatusMisdirectedRequest},
		"another port":                          {with(s.inside("packages"), func(r *http.Request) { r.Host = "127.0.0.1:80" }), http.StatusMisdirectedRequest},
		"no port":                               {with(s.inside("packages"), func(r *http.Request) { r.Host = "127.0.0.1" }), http.StatusMisdirectedRequest},
		"the form under a name that leads here": {with(request(http.MethodGet, "/"), func(r *http.Request) { r.Host = "evil.example" }), http.StatusMisdirectedRequest},
		"a form of another site": {
			with(s.inside("packages", "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"), func(r *http.Request) { r.Method = http.MethodPost }), http.StatusForbidden,
		},
		"a form of an old browser": {
			with(s.inside("packages", "Origin", "https://evil.example"), func(r *http.Request) { r.Method = http.MethodPost }), http.StatusForbidden,
		},
		"a form of a sandboxed frame": {with(s.inside("packages", "Origin", "null"), func(r *http.Request) { r.Method = http.MethodPost }), http.StatusForbidden},
		"a form of this page": {
			with(s.inside("packages", "Sec-Fetch-Site", "same-origin"), func(r *http.Request) { r.Method = http.MethodPost }), http.StatusMethodNotAllowed,
		},
		"a stream of another site":   {s.inside("packages/stream", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Origin", "https://evil.example"), http.StatusForbidden},
		"a stream of another port":   {s.inside("packages/stream", "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Origin", "http://127.0.0.1:8080"), http.StatusForbidden},
		"a stream of an old browser": {s.inside("packages/stream", "Origin", "https://evil.example"), http.StatusForbidden},
		"a script of another site":   {s.inside("packages", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"), http.StatusForbidden},
		"a link of another site":     {s.inside("packages", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), http.StatusForbidden},
		"a frame of another site":    {request(http.MethodGet, "/", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"), http.StatusForbidden},
		"no cookie":                  {request(http.MethodGet, s.Base()+"packages"), http.StatusForbidden},
		"the code in place of the cookie": {
			request(http.MethodGet, s.Base()+"packages", "Cookie", s.cookie.Name+"="+s.Code()), http.StatusForbidden,
		},
		"another name of the cookie": {request(http.MethodGet, s.Base()+"packages", "Cookie", "lockstep="+s.cookie.Value), http.StatusForbidden},
		"another path":               {with(request(http.MethodGet, "/guess/packages"), func(r *http.Request) { r.AddCookie(s.cookie) }), http.StatusForbidden},
		"another method":             {with(s.inside("packages"), func(r *http.Request) { r.Method = http.MethodDelete }), http.StatusMethodNotAllowed},
		"a preflight":                {with(s.inside("packages", "Origin", "https://evil.example"), func(r *http.Request) { r.Method = http.MethodOptions }), http.StatusMethodNotAllowed},
	} {
		w := s.do(test.request)
		require.Equal(t, test.status, w.StatusCode, fmt.Sprintf("%s: %s", name, w.Status))
		if got := body(t, w); strings.Contains(got, secret) {
			t.Errorf("%s: got %q", name, got)
		}
		require.Equal(t, "", w.Header.Get("Access-Control-Allow-Origin"), fmt.Sprintf("%s: other sites can read the answer", name))
	}
	// The file that opens the browser is another site, and only leads to the form.
	if w := s.do(request(http.MethodGet, "/", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")); w.StatusCode != http.StatusOK {
		t.Errorf("the file leads to %s", w.Status)
	}
}

// No answer, not even a refusal, can be framed, cached or reinterpreted, and it only runs the
// page's own script.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newSite()
	s.signIn(t)
	foreign := s.inside("packages")
	foreign.Host = "evil.example"
	for name, r := range map[string]*http.Request{"inside": s.inside("packages"), "form": request(http.MethodGet, "/"), "refusal": foreign, "asset": request(http.MethodGet, "/assets/none")} {
		h := s.do(r).Header
		policy := h.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "base-uri 'none'") {
			t.Errorf("%s: policy %q", name, policy)
		}
		// An icon of a package is an image, and browsers run no script in images.
		policy = strings.Replace(policy, "img-src 'self' data:;", "", 1)
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "http") || strings.Contains(policy, "data:") {
			t.Errorf("%s: the policy allows too much: %q", name, policy)
		}
		for header, want := range map[string]string{
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			require.Equal(t, want, h.Get(header), fmt.Sprintf("%s: %s", name, header))
		}
	}
}

// A code is exchanged once, and only from this page.
func TestCodeIsUsedOnce(t *testing.T) {
	t.Parallel()
	s := newSite()
	if w := s.enter(s.Code(), "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"); w.StatusCode != http.StatusForbidden || len(w.Cookies()) > 0 {
		t.Errorf("another site signs in: %s", w.Status)
	}
	s.signIn(t)
	if w := s.enter(s.Code()); w.StatusCode != http.StatusForbidden || len(w.Cookies()) > 0 {
		t.Errorf("the second use: %s", w.Status)
	}
	require.Contains(t, body(t, s.do(s.inside("packages"))), secret, "the second use ended the session of the first")
}

// A part of the code is not the code. Wrong codes do not use up the right one.
func TestGuessing(t *testing.T) {
	t.Parallel()
	s := newSite()
	for i := range len(s.Code()) {
		if w := s.enter(s.Code()[:i]); w.StatusCode != http.StatusForbidden || len(w.Cookies()) > 0 {
			t.Fatalf("guess %d: %s", i, w.Status)
		}
	}
	s.signIn(t)
}

// A form that is too large is not read.
func TestLargeForm(t *testing.T) {
	t.Parallel()
	s := newSite()
	if w := s.enter(strings.Repeat("a", guard.MaxBody+1)); w.StatusCode != http.StatusBadRequest {
		t.Errorf("got %s", w.Status)
	}
}
