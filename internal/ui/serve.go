package ui

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/kube/serving"
	"lockstep.run/lockstep/internal/ui/guard"
	"lockstep.run/lockstep/internal/ui/page"
	"lockstep.run/lockstep/internal/ui/watches"
)

const (
	pageHeaderBytes  = 16 << 10         // of a request; browsers send one or two KiB
	pageWriteTimeout = 30 * time.Second // of an answer, and of each piece of a stream
	pageConnections  = 64               // a browser opens six for a host
	pageStreams      = 12               // enough for two browsers
)

// server answers the requests of the browser that is signed in.
type server struct {
	cluster *cluster.Cluster
	board   *watches.Board
	details *watches.Details
	guard   *guard.Guard

	// ctx ends with the command.
	ctx context.Context
	// notes on every page, in addition to the board's.
	notes   []string
	streams chan struct{}
}

// newServer returns a server for a page at an address.
func newServer(ctx context.Context, cl *cluster.Cluster, host string) *server {
	s := &server{
		cluster: cl, ctx: ctx, streams: make(chan struct{}, pageStreams),
		board: watches.Start(ctx, cl), details: watches.NewDetails(cl),
	}
	s.guard = guard.New(host, page.Door{}, serving.Hold(s.routes()))
	return s
}

// serve answers on a listener until ctx ends.
func (s *server) serve(listener net.Listener) error {
	h := &http.Server{
		Handler: s.guard, ReadHeaderTimeout: pageReadTimeout, ReadTimeout: pageReadTimeout, WriteTimeout: pageWriteTimeout,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: pageHeaderBytes, BaseContext: func(net.Listener) context.Context { return s.ctx },
		ConnContext: serving.Connected,
	}

	stop := context.AfterFunc(s.ctx, func() { _ = h.Close() })
	defer stop()
	if err := h.Serve(serving.Limit(listener, pageConnections)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// pageReadTimeout is the time for reading a request.
const pageReadTimeout = 10 * time.Second // of a request

// view is the content of a page, and the signal that it changed. Its resources end with the
// request.
type view struct {
	draw func(page.Frame) *page.Page
	// subscribe is nil for a page that does not change.
	subscribe func() (<-chan struct{}, func())
}

// notFound is the error for a page that does not exist.
type notFound string

// Error implements error.
func (e notFound) Error() string { return string(e) }

// routes returns the pages inside the guard. Each page has a stream of its changes below it.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.guard.Base()+"packages", http.StatusSeeOther)
	})

	for path, make := range map[string]func(*http.Request) (view, error){
		"/packages": s.list, "/packages/{namespace}/{name}": s.one, "/clusterpackages/{name}": s.one,
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, make) })
		mux.HandleFunc("GET "+path+"/stream", func(w http.ResponseWriter, r *http.Request) { s.stream(w, r, make) })
	}

	for _, path := range []string{"/packages/{namespace}/{name}", "/clusterpackages/{name}"} {
		mux.HandleFunc("GET "+path+"/diff", func(w http.ResponseWriter, r *http.Request) { s.show(w, r, s.diff) })
	}

	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, notFound("There is no page at this address."))
	})
	return mux
}

// frame returns the current frame of a page.
func (s *server) frame() page.Frame {
	return page.Frame{Base: s.guard.Base(), Cluster: s.cluster.Host, Notes: slices.Concat(s.notes, s.board.Notes()), Now: time.Now()}
}

// show answers with a document.
func (s *server) show(w http.ResponseWriter, r *http.Request, open func(*http.Request) (view, error)) {
	// The request was read, and its deadline would end a longer answer.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	ctx, cancel := context.WithTimeout(r.Context(), pageReadTimeout)
	defer cancel()
	s.board.Synced(ctx)
	v, err := open(r.WithContext(ctx))
	if err != nil {
		s.fail(w, err)
		return
	}
	write(w, http.StatusOK, v.draw(s.frame()))
}

// fail answers with a page for an error.
func (s *server) fail(w http.ResponseWriter, err error) {
	status, title := http.StatusBadGateway, "This cannot be shown"
	if missing := notFound(""); errors.As(err, &missing) {
		status, title = http.StatusNotFound, "Not found"
	}
	write(w, status, page.Failed(s.frame(), title, err.Error()))
}

// write writes a document, as a whole or not at all.
func write(w http.ResponseWriter, status int, p *page.Page) {
	if p == nil { // its subject was deleted while it was drawn
		http.Error(w, "The object of this page no longer exists.", http.StatusNotFound)
		return
	}
	// The document is complete before the first byte is sent, so that an error can still set the
	// status.
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		http.Error(w, "The page cannot be drawn.", http.StatusInternalServerError)
		return
	}

	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // only the connection can fail
}

// targetOf returns the package in the path of a request.
func targetOf(r *http.Request) progress.Target {
	return progress.TargetFor(r.PathValue("namespace"), r.PathValue("name"))
}

// list is the page of all packages.
func (s *server) list(r *http.Request) (view, error) {
	values := r.URL.Query()
	q := page.Query{Text: values.Get("q"), State: values.Get("state"), Namespace: values.Get("namespace")}
	q.Page, _ = strconv.Atoi(values.Get("page"))
	return view{
		draw:      func(f page.Frame) *page.Page { return page.ListOf(f, s.board.Rows(), q) },
		subscribe: s.board.Subscribe,
	}, nil
}

// causePatience limits how long a page waits for the cause. Later, the cause is sent by the stream.
const causePatience = 2 * time.Second

// one is the page of one package.
func (s *server) one(r *http.Request) (view, error) {
	t := targetOf(r)
	pkg := s.board.Package(t)
	if pkg == nil {
		return view{}, notFound(fmt.Sprintf("There is no %s that you may read.", t))
	}
	detail := s.details.Open(r.Context(), t, pkg.GetUID())
	ctx, cancel := context.WithTimeout(r.Context(), pageReadTimeout)
	defer cancel()
	detail.Await(ctx, causePatience)
	if o, known := detail.Observed(); !known || o.State.Target.Name == "" {
		return view{}, errors.New(cmp.Or(o.Note, t.String()+" was not read in time: reload the page, or check the API server: kubectl get --raw '/readyz?verbose'"))
	}

	icon := s.icon(ctx, pkg)
	return view{
		draw: func(f page.Frame) *page.Page {
			o, _ := detail.Observed()
			if o.Gone {
				return nil
			}
			o.Icon = icon
			return page.PackageOf(f, o)
		},
		subscribe: detail.Subscribe,
	}, nil
}

// icon returns the icon of a package in the catalogue, if the user can read it.
func (s *server) icon(ctx context.Context, pkg corev1alpha1.GenericPackage) template.URL {
	resolved := pkg.PackageStatus().Resolved
	// A package that was never resolved is not in the catalogue under a known name.
	if resolved == nil {
		return ""
	}
	_, display, err := s.cluster.Catalogue(pkg.GetNamespace()).Of(ctx, cmp.Or(resolved.CatalogName, resolved.PackageName))
	if err != nil || display == nil {
		return ""
	}
	return page.Icon(display.IconSVG)
}

// diff compares two revisions of a package.
func (s *server) diff(r *http.Request) (view, error) {
	t := targetOf(r)
	if s.board.Package(t) == nil {
		return view{}, notFound(fmt.Sprintf("There is no %s that you may read.", t))
	}
	// The copy has the namespace of the package, while other requests use their own.
	of := *s.cluster
	of.Namespace = t.Namespace
	rollout, err := of.Rollout(r.Context(), cluster.Name{Scope: t.Scope, Name: t.Name})
	if err != nil {
		return view{}, err
	}

	var revisions [2]corev1alpha1.GenericObjectSet
	for i, name := range []string{"from", "to"} {
		number, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
		if err != nil {
			return view{}, notFound("The address does not name two revisions, as in ?from=1&to=2.")
		}
		if revisions[i], err = rollout.Revision(number); err != nil {
			return view{}, notFound(err.Error())
		}
	}

	c, err := of.Compare(r.Context(), revisions[0], revisions[1])
	return view{draw: func(f page.Frame) *page.Page { return page.DiffOf(f, t, c) }}, err
}

// uiCommand is kubectl package ui.
type uiCommand struct {
	command.Command
	port int
}

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	c := &uiCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the installed packages as a page in the browser",
		Long: `Serve a page with the packages, their states with the causes, and their revisions, and print its address. It
follows the cluster with your rights, and does not change it.

The page is served only on this machine, to one browser, until the command ends. More: docs/ui.md`,
		Example: `  kubectl package ui
  kubectl package ui --port 8443`,
		Args: command.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.port < 0 || c.port > 65535 {
				return command.UsageError(cmd, errors.New("--port must be between 0 and 65535"))
			}
			return c.run(cmd.Context())
		},
	}

	c.Connects(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().IntVar(&c.port, "port", 0, "listen on this `port` of the loopback address (default: a free one)")
	return []*cobra.Command{cmd}
}

// run prints the address of the page, and serves it until the command ends.
func (c *uiCommand) run(ctx context.Context) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	// Only the loopback address is used, so that no other machine reaches the page.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)))
	if err != nil {
		return fmt.Errorf("the page cannot be served: %w. Choose another --port, or leave it out for a free one", err)
	}

	s := newServer(ctx, cl, listener.Addr().String())
	s.notes = notesOf(ptr.Deref(c.Flags.Context, ""), ptr.Deref(c.Flags.KubeConfig, ""))
	c.WarnOfSilence(ctx, cl)
	fmt.Fprintln(c.Streams.ErrOut, "This address opens the page, in one browser. End it with Ctrl-C")
	// Standard output has only the address, so that it can be piped to a browser.
	fmt.Fprintln(c.Streams.Out, s.guard.Address())
	return s.serve(listener)
}

// notesOf describes the flags that the commands on the page lack. Without these flags, the commands
// mean another cluster than the page.
func notesOf(kubeContext, kubeconfig string) []string {
	var flags string
	for _, flag := range [][2]string{{"--context", kubeContext}, {"--kubeconfig", kubeconfig}} {
		if flag[1] != "" {
			flags += " " + flag[0] + "=" + flag[1]
		}
	}
	if flags == "" {
		return nil
	}
	return []string{"Commands that you copy from this page need the flags that it was opened with:" + flags}
}
