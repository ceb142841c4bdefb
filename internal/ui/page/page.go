package page

import (
	"bytes"
	"embed"
	"fmt"
	"hash/fnv"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/ui/guard"
)

// Sizes of pages. A longer list continues on the next page, or states how much it omits.
const (
	ListRows     = 100 // of a list per page
	PhaseObjects = 100 // of a phase: blocking ones first
)

// files has the templates, the style sheet and the script.
//
//go:embed templates assets
var files embed.FS

// templates are parsed at the start, so that an error in one is found by any test.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"line": line, "lines": lines, "words": words, "place": place, "icon": icon, "count": terminal.Count, "tone": toneOf,
}).ParseFS(files, "templates/*.html"))

// pageTextBytes limits a text from the cluster, such as a message.
const pageTextBytes = 4 << 10 // of a text from the cluster, such as a message

// Assets are the style sheet and the script.
func Assets() http.Handler {
	assets, err := fs.Sub(files, "assets")
	if err != nil {
		panic(err) // the name is constant
	}
	return http.FileServerFS(assets)
}

// Frame surrounds every page.
type Frame struct {
	// Base is the path of all pages, with a slash at both ends.
	Base string
	// Cluster is the address of the API server.
	Cluster string
	// Notes name the parts that are not shown, and the reasons: missing rights, or a lost
	// connection.
	Notes []string
	Now   time.Time
}

// Fragment is a part of a page that is replaced as a whole.
type Fragment struct {
	ID     string        `json:"id"`
	Digest string        `json:"digest"`
	HTML   template.HTML `json:"html"`
}

// Page is a document of fragments.
type Page struct {
	Frame

	// View is the template of the document, and Title its heading.
	View, Title string
	// Stream is the address of its changes, relative to Base; empty for a page that does not
	// change.
	Stream    string
	Fragments map[string]Fragment

	// Of is the data of the view itself, in addition to the fragments.
	Of any

	order []string
	err   error
}

// newPage returns a page with the notes of its frame.
func newPage(f Frame, view, title, stream string) *Page {
	p := &Page{Frame: f, View: view, Title: title, Stream: stream, Fragments: map[string]Fragment{}}
	p.fragment("notes", f.Notes)
	return p
}

// fragment renders the template of the same name.
func (p *Page) fragment(id string, of any) {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, id, of); err != nil && p.err == nil {
		p.err = fmt.Errorf("draw %s: %w", id, err)
	}
	h := fnv.New64a()
	_, _ = h.Write(b.Bytes())
	p.Fragments[id] = Fragment{ID: id, Digest: fmt.Sprintf("%016x", h.Sum64()), HTML: template.HTML(b.String())} //nolint:gosec // html/template escaped it
	p.order = append(p.order, id)
}

// Write writes the document.
func (p *Page) Write(w io.Writer) error {
	if p.err != nil {
		return p.err
	}
	return templates.ExecuteTemplate(w, p.View, p)
}

// Changed returns the fragments whose digests differ from known, in the order of the page.
func (p *Page) Changed(known map[string]string) ([]Fragment, error) {
	var out []Fragment
	for _, id := range p.order {
		if f := p.Fragments[id]; known[id] != f.Digest {
			out = append(out, f)
		}
	}
	return out, p.err
}

// place puts a fragment where the script can find it.
func place(f Fragment) template.HTML {
	return template.HTML(`<div id="` + f.ID + `" data-digest="` + f.Digest + `">` + string(f.HTML) + `</div>`) //nolint:gosec // ids are constants
}

// line returns a text of a cluster for use within a line.
func line(text string) string { return terminal.Line(limits.Cut(text, pageLineBytes)) }

// words splits a command, so that a browser only breaks it between words and not at hyphens.
func words(command string) []string { return strings.Fields(line(command)) }

// lines is line for texts that can have several lines.
func lines(text string) string { return terminal.Text(limits.Cut(text, pageTextBytes)) }

// age is coarse, so that pages change by the minute rather than by the second.
func age(t metav1.Time, now time.Time) string {
	switch since := now.Sub(t.Time); {
	case t.IsZero():
		return ""
	case since < time.Minute:
		return "<1m"
	case since < time.Hour:
		return fmt.Sprintf("%dm", int(since.Minutes()))
	default:
		return duration.ShortHumanDuration(since)
	}
}

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

// Tone is the meaning of a state. It has a colour and a shape, so that it can be recognized without
// the colour.
type Tone string

// Tones. The tones of packages that need help come first.
const (
	ToneBad  Tone = "bad"
	ToneHold Tone = "hold"
	ToneBusy Tone = "busy"
	ToneWait Tone = "wait"
	ToneIdle Tone = "idle"
	ToneGone Tone = "gone"
	ToneGood Tone = "good"
)

// tones are the tones of the states.
var tones = map[summary.Summary]Tone{
	summary.Unavailable: ToneBad, summary.Stalled: ToneBad, summary.Invalid: ToneBad, summary.Unresolved: ToneBad,
	summary.NotVerified: ToneBad, summary.ImagePullError: ToneBad, summary.Unsatisfied: ToneBad, summary.Target: ToneBad,
	summary.Deleting: ToneGone, summary.Waiting: ToneWait, summary.Awaiting: ToneWait, summary.Progressing: ToneBusy, summary.Pending: ToneIdle,
	summary.Paused: ToneHold, summary.Available: ToneGood,
}

// toneOf returns the tone of a state. An unknown state is idle.
func toneOf(s summary.Summary) Tone {
	if t, known := tones[s]; known {
		return t
	}
	return ToneIdle
}

// icon refers to a drawing of the document, which has one for each tone.
func icon(t Tone) template.HTML {
	return template.HTML(`<svg class="icon ` + string(t) + `" aria-hidden="true"><use href="#i-` + string(t) + `"></use></svg>`) //nolint:gosec // tones are constants
}

// Step is a phase in the strip of a package.
type Step struct {
	Name  string
	Tone  Tone
	Word  string
	Count string
}

// phaseTone returns the tone of a phase. failed means that it has objects that block for good.
func phaseTone(ph progress.Phase, failed bool) Tone {
	switch {
	case ph.Finished():
		return ToneGood
	case failed:
		return ToneBad
	case ph.Active():
		return ToneBusy
	}
	return ToneIdle
}

// objectTone returns the tone of an object. A blocked object is bad only in a bad phase. Otherwise
// it is only awaited.
func objectTone(o progress.Object, phase Tone) Tone {
	switch {
	case o.State == progress.ObjectReady:
		return ToneGood
	case o.State == progress.ObjectBlocked && phase == ToneBad:
		return ToneBad
	case o.State == progress.ObjectBlocked:
		return ToneWait
	case o.State == progress.ObjectWritten:
		return ToneBusy
	}
	return ToneIdle
}

// objectWords are states of objects.
var objectWords = map[progress.ObjectState]string{
	progress.ObjectWaiting: "not written yet", progress.ObjectWritten: "written", progress.ObjectBlocked: "not ready", progress.ObjectReady: "ready",
}
