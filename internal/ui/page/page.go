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

	"lockstep.run/lockstep/internal/cli/terminal"
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
func line(text string) string { return terminal.Line(short(text, pageLineBytes)) }

// words splits a command, so that a browser only breaks it between words and not at hyphens.
func words(command string) []string { return strings.Fields(line(command)) }

// lines is line for texts that can have several lines.
func lines(text string) string { return terminal.Text(short(text, pageTextBytes)) }

// short cuts a text at a number of bytes, without half of a character.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

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
