package page

import (
	"net/http"

	"lockstep.run/lockstep/internal/ui/guard"
)

// Door implements guard.Pages.
type Door struct{}

var _ guard.Pages = Door{}

// door is the data of the page with the form for a code.
type door struct {
	Title, Text, To string
	Form            bool
}

// Enter implements guard.Pages.
func (Door) Enter(w http.ResponseWriter, status int, outcome guard.Outcome) {
	d := door{Form: true}
	switch outcome {
	case guard.Accepted:
		d.Title, d.Text = "This page belongs to a terminal", "It shows one cluster with the rights of the user of that terminal, in one browser. Open the address that the command printed, or paste its code."
	case guard.Wrong:
		d.Title, d.Text = "That is not the code", "Copy all of it."
	case guard.Used:
		d.Title, d.Text, d.Form = "This code was used", "A code opens the page once, in one browser. If that was not you, end the command in the terminal. To open another browser, start the command again.", false
	}

	show(w, status, "enter", d)
}

// Welcome implements guard.Pages.
func (Door) Welcome(w http.ResponseWriter, to string) { show(w, http.StatusOK, "welcome", to) }

// Refuse implements guard.Pages.
func (Door) Refuse(w http.ResponseWriter, status int, why string) {
	show(w, status, "enter", door{Title: http.StatusText(status), Text: why})
}

// Assets implements guard.Pages.
func (Door) Assets() http.Handler { return Assets() }

// show writes a page of the guard.
func show(w http.ResponseWriter, status int, name string, of any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = templates.ExecuteTemplate(w, name, of) // only the connection can fail
}

// Failed is a page for content that cannot be shown.
func Failed(f Frame, title, why string) *Page {
	p := newPage(f, "failed", title, "")
	p.Of = why
	return p
}
