package guard

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
)

// MaxBody limits a form, which has a code, in bytes.
const MaxBody = 4 << 10

// Outcome of the exchange of a code.
type Outcome int

// Outcomes.
const (
	Accepted Outcome = iota
	// Wrong means that the text is not the code.
	Wrong
	// Used means that the code was already exchanged.
	Used
)

// Pages are the pages that a Guard shows to browsers that are not signed in.
type Pages interface {
	// Enter answers with the form for the code, before an exchange or after a failed one.
	Enter(w http.ResponseWriter, status int, outcome Outcome)
	// Welcome answers an exchange with a page that leads to an address. A redirect would not work:
	// a browser does not send a SameSite=Strict cookie along with a redirect that started at
	// another site.
	Welcome(w http.ResponseWriter, to string)
	// Refuse answers with an error.
	Refuse(w http.ResponseWriter, status int, why string)
	// Assets are the style sheet and the script, which everyone may read.
	Assets() http.Handler
}

// Guard is the state of one page: its code, and the session that the code was exchanged for.
type Guard struct {
	host  string
	pages Pages

	// inside serves the session.
	inside http.Handler
	origin *http.CrossOriginProtection

	code, session, cookie, base string

	mu   sync.Mutex
	used bool
}

// New guards a page at an address such as 127.0.0.1:4711. inside gets paths without Base.
func New(host string, pages Pages, inside http.Handler) *Guard {
	host = strings.TrimSuffix(host, ":80") // the default port, which browsers omit from Host and Origin
	return &Guard{
		host: host, pages: pages, inside: inside, origin: http.NewCrossOriginProtection(),
		code: random(), session: random(), cookie: "lockstep-" + random()[:12], base: "/" + random()[:22] + "/",
	}
}

// random returns 256 random bits as text.
func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// Address is the address to open in a browser, with the code.
func (g *Guard) Address() string { return "http://" + g.host + "/#" + g.code }

// Code is the code that the form requires.
func (g *Guard) Code() string { return g.code }

// Base is the path of the pages, which starts and ends with a slash.
func (g *Guard) Base() string { return g.base }

// headers of every answer.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; " +
		"base-uri 'none'; frame-ancestors 'none'",
	"X-Frame-Options":        "DENY",
	"X-Content-Type-Options": "nosniff",
	// With no-referrer the Origin of a form is null, so browsers without Sec-Fetch-Site could not
	// sign in.
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-store",
	"Vary":                         "Cookie, Origin, Sec-Fetch-Site, Sec-Fetch-Mode, Sec-Fetch-Dest",
}

// ServeHTTP implements http.Handler.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}

	if status, why := g.refusal(r); status != 0 {
		g.pages.Refuse(w, status, why)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxBody)

	switch {
	case r.URL.Path == "/":
		g.pages.Enter(w, http.StatusOK, Accepted)
	case r.URL.Path == "/enter" && r.Method == http.MethodPost:
		g.enter(w, r)
	case strings.HasPrefix(r.URL.Path, "/assets/"):
		http.StripPrefix("/assets/", g.pages.Assets()).ServeHTTP(w, r)
	case strings.HasPrefix(r.URL.Path, g.base) && g.knows(r):
		http.StripPrefix(strings.TrimSuffix(g.base, "/"), g.inside).ServeHTTP(w, r)
	default:
		// The answer is the same for a right path without the cookie, so that no one can find out
		// the path.
		g.pages.Refuse(w, http.StatusForbidden, "This browser is not signed in. Open the address that the terminal shows.")
	}
}

// refusal returns the status and the reason for a request that this page does not answer; 0 if it
// does.
func (g *Guard) refusal(r *http.Request) (status int, why string) {
	// A foreign name for the address is DNS rebinding.
	if r.Host != g.host {
		return http.StatusMisdirectedRequest, "This page has the address http://" + g.host + " and no other name."
	}

	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		if g.origin.Check(r) != nil {
			return http.StatusForbidden, crossOrigin
		}
		if r.URL.Path != "/enter" {
			return http.StatusMethodNotAllowed, "This page is read-only: it only accepts the code."
		}
	default:
		return http.StatusMethodNotAllowed, "This page answers GET and HEAD."
	}

	if origin := r.Header.Get("Origin"); r.Method != http.MethodPost && origin != "" && origin != "http://"+g.host {
		return http.StatusForbidden, crossOrigin
	}

	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin": // programs other than browsers, the user, and this page
		return 0, ""
	}

	if r.Method == http.MethodGet && r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return 0, "" // a link to the form
	}
	return http.StatusForbidden, crossOrigin
}

// crossOrigin is the refusal of a request of another site.
const crossOrigin = "This request comes from another site. Open the address that the terminal shows."

// knows reports whether a request has the cookie.
func (g *Guard) knows(r *http.Request) bool {
	c, err := r.Cookie(g.cookie)
	return err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(g.session)) == 1
}

// enter exchanges the code of a form for the cookie.
func (g *Guard) enter(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		g.pages.Refuse(w, http.StatusBadRequest, "The form cannot be read, or is too large.")
		return
	}

	switch outcome := g.exchange(strings.TrimSpace(r.PostForm.Get("code"))); outcome {
	case Accepted:
		// The path limits the cookie to this page, because cookies ignore the port.
		http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.session, Path: g.base, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		g.pages.Welcome(w, g.base)
	default:
		g.pages.Enter(w, http.StatusForbidden, outcome)
	}
}

// exchange accepts a code once.
func (g *Guard) exchange(code string) Outcome {
	g.mu.Lock()
	defer g.mu.Unlock()
	// The comparison takes the same time for each wrong code. A code has 256 bits, so wrong ones are
	// not counted: no number of attempts is enough.
	if subtle.ConstantTimeCompare([]byte(code), []byte(g.code)) != 1 {
		return Wrong
	}
	if g.used {
		return Used
	}
	g.used = true
	return Accepted
}
