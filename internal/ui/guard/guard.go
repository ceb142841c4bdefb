package guard

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
)

// What the browser may send.
const (
	MaxBody  = 4 << 10 // bytes of a form: a code
	MaxWrong = 10      // codes, after which none is accepted: a code has 256 bits, so that more are an attack
)

// Outcome of the exchange of a code.
type Outcome int

// Outcomes.
const (
	Accepted Outcome = iota
	// Wrong is another text than the code.
	Wrong
	// Used is a code after its exchange.
	Used
	// Closed is any code after too many wrong ones.
	Closed
)

// Pages are what a Guard shows to those whom it does not let in.
type Pages interface {
	// Enter answers with the form for the code, before an exchange or after one that failed.
	Enter(w http.ResponseWriter, status int, outcome Outcome)
	// Welcome answers an exchange with a page that leads to an address: a browser sends no SameSite=Strict cookie along with a
	// redirect that began at another site, such as the file that opened it.
	Welcome(w http.ResponseWriter, to string)
	// Refuse answers with an error.
	Refuse(w http.ResponseWriter, status int, why string)
	// Assets are style sheet and script, which are for everyone.
	Assets() http.Handler
}

// Guard is the state of one page: its code, and the session that it was exchanged for.
type Guard struct {
	host  string
	pages Pages
	// inside is what the session opens.
	inside http.Handler
	origin *http.CrossOriginProtection

	code, session, cookie, base string

	mu    sync.Mutex
	used  bool
	wrong int
	// closed is called once, after too many wrong codes.
	closed func()
}

// New guards a page at an address such as 127.0.0.1:4711. inside gets paths without Base.
func New(host string, pages Pages, inside http.Handler, closed func()) *Guard {
	host = strings.TrimSuffix(host, ":80") // the default port, which browsers leave out of Host and Origin
	return &Guard{
		host: host, pages: pages, inside: inside, origin: http.NewCrossOriginProtection(), closed: closed,
		code: random(), session: random(), cookie: "lockstep-" + random()[:12], base: "/" + random()[:22] + "/",
	}
}

func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// Address is what a browser is opened with: it has the code.
func (g *Guard) Address() string { return "http://" + g.host + "/#" + g.code }

// Code is what the form asks for.
func (g *Guard) Code() string { return g.code }

// Base is the path of the pages, which begins and ends with a slash.
func (g *Guard) Base() string { return g.base }

// headers of every answer.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; " +
		"base-uri 'none'; frame-ancestors 'none'",
	"X-Frame-Options":        "DENY",
	"X-Content-Type-Options": "nosniff",
	// With no-referrer the Origin of a form is null, which browsers without Sec-Fetch-Site could not sign in with.
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
		// The same answer with a right path and without the cookie: a path is not to be found out.
		g.pages.Refuse(w, http.StatusForbidden, "This browser is not signed in. Open the address that the terminal shows.")
	}
}

// refusal is why a request is answered by nothing of this page; 0 where it may be.
func (g *Guard) refusal(r *http.Request) (status int, why string) {
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
			return http.StatusMethodNotAllowed, "This page changes nothing: only the code is posted."
		}
	default:
		return http.StatusMethodNotAllowed, "This page answers GET and HEAD."
	}
	if origin := r.Header.Get("Origin"); r.Method != http.MethodPost && origin != "" && origin != "http://"+g.host {
		return http.StatusForbidden, crossOrigin
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin": // programs that are no browser, the user, and this page
		return 0, ""
	}
	if r.Method == http.MethodGet && r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return 0, "" // a link to the form, such as that of the file that opens the browser
	}
	return http.StatusForbidden, crossOrigin
}

const crossOrigin = "This request comes from another site. Open the address that the terminal shows."

// knows reports whether a request has the cookie.
func (g *Guard) knows(r *http.Request) bool {
	c, err := r.Cookie(g.cookie)
	return err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(g.session)) == 1
}

func (g *Guard) enter(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		g.pages.Refuse(w, http.StatusBadRequest, "The form cannot be read, or is too large.")
		return
	}
	switch outcome := g.exchange(strings.TrimSpace(r.PostForm.Get("code"))); outcome {
	case Accepted:
		http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.session, Path: g.base, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		g.pages.Welcome(w, g.base)
	case Closed:
		g.pages.Enter(w, http.StatusTooManyRequests, outcome)
	default:
		g.pages.Enter(w, http.StatusForbidden, outcome)
	}
}

// exchange takes a code, once.
func (g *Guard) exchange(code string) Outcome {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch right := subtle.ConstantTimeCompare([]byte(code), []byte(g.code)) == 1; {
	case g.wrong >= MaxWrong:
		return Closed
	case right && g.used:
		return Used
	case right:
		g.used = true
		return Accepted
	}
	if g.wrong++; g.wrong == MaxWrong {
		g.closed()
	}
	return Wrong
}
