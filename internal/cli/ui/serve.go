package ui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/planning"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/cli/ui/guard"
	"lockstep.run/lockstep/internal/cli/ui/page"
	"lockstep.run/lockstep/internal/cli/ui/watches"
	"lockstep.run/lockstep/internal/limits"
)

// server answers the requests of the browser that is signed in.
type server struct {
	cluster *cluster.Cluster
	board   *watches.Board
	details *watches.Details
	offers  *watches.Catalogue
	guard   *guard.Guard
	// ctx ends with the command.
	ctx context.Context
	// changes: packages may be paused and retried.
	changes bool
	// notes of every page, beside those of the board.
	notes []string
	// quiet are streams for what commands print beside their result.
	quiet   command.Command
	streams chan struct{}
	// plans are those that are made at a time.
	plans chan struct{}
	now   func() time.Time
}

// newServer is for a page at an address; closed is called after too many wrong codes.
func newServer(ctx context.Context, cl *cluster.Cluster, host string, changes bool, closed func()) *server {
	s := &server{
		cluster: cl, ctx: ctx, changes: changes, quiet: command.Command{Streams: genericiooptions.NewTestIOStreamsDiscard()}, streams: make(chan struct{}, limits.PageStreams), plans: make(chan struct{}, limits.PagePlans), now: time.Now,
		board: watches.Start(ctx, cl), details: watches.NewDetails(ctx, cl),
	}
	s.offers = watches.NewCatalogue(ctx, cl, s.board)
	if a := cl.Archive; a != nil {
		s.now = func() time.Time { return a.Created }
		s.notes = notesOfArchive(a.Created, a.Lacking)
	}
	s.guard = guard.New(host, page.Door{}, s.routes(), closed)
	return s
}

// serve answers on a listener until ctx ends.
func (s *server) serve(listener net.Listener) error {
	h := &http.Server{
		Handler: s.guard, ReadHeaderTimeout: limits.PageReadTimeout, ReadTimeout: limits.PageReadTimeout, WriteTimeout: limits.PageWriteTimeout,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: limits.PageHeaderBytes, BaseContext: func(net.Listener) context.Context { return s.ctx },
	}
	stop := context.AfterFunc(s.ctx, func() { _ = h.Close() })
	defer stop()
	if err := h.Serve(&bounded{Listener: listener, places: make(chan struct{}, limits.PageConnections)}); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// view is what a page shows, and when that changes.
type view struct {
	draw func(page.Frame) *page.Page
	// subscribe is nil for a page that does not change.
	subscribe func() (<-chan struct{}, func())
	// release ends what the view holds; it may be nil.
	release func()
}

// notFound is an error of a page that does not exist.
type notFound string

func (e notFound) Error() string { return string(e) }

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.guard.Base()+"packages", http.StatusSeeOther)
	})
	for path, make := range map[string]func(*http.Request) (view, error){
		"/packages": s.list, "/packages/{namespace}/{name}": s.one, "/clusterpackages/{name}": s.one, "/graph": s.graph,
		"/catalogue": s.catalogue,
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, limits.PageReadTimeout, make) })
		mux.HandleFunc("GET "+path+"/stream", func(w http.ResponseWriter, r *http.Request) { s.stream(w, r, make) })
	}
	mux.HandleFunc("GET /catalogue/package", func(w http.ResponseWriter, r *http.Request) { s.show(w, r, limits.PageOfferTime, s.offer) })
	for _, path := range []string{"/packages/{namespace}/{name}", "/clusterpackages/{name}"} {
		if s.cluster.Archive != nil {
			continue
		}
		mux.HandleFunc("GET "+path+"/diff", func(w http.ResponseWriter, r *http.Request) { s.show(w, r, limits.PageReadTimeout, s.diff) })
		mux.HandleFunc("GET "+path+"/plan", func(w http.ResponseWriter, r *http.Request) { s.show(w, r, limits.PagePlan, s.plan) })
		for action, change := range actions {
			if s.changes {
				mux.HandleFunc("POST "+path+"/"+action, func(w http.ResponseWriter, r *http.Request) { s.change(w, r, change) })
			}
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, notFound("There is no page of this address."))
	})
	return mux
}

func (s *server) frame() page.Frame {
	return page.Frame{Base: s.guard.Base(), Cluster: s.cluster.Host, Notes: slices.Concat(s.notes, s.board.Notes()), Now: s.now(), Changes: s.changes, Archive: s.cluster.Archive != nil}
}

// show answers with a document, within some time.
func (s *server) show(w http.ResponseWriter, r *http.Request, within time.Duration, open func(*http.Request) (view, error)) {
	// The request was read: its deadline would end what takes longer.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	s.board.Synced(ctx)
	v, err := open(r.WithContext(ctx))
	if err != nil {
		s.fail(w, err)
		return
	}
	if v.release != nil {
		defer v.release()
	}
	write(w, http.StatusOK, v.draw(s.frame()))
}

func (s *server) fail(w http.ResponseWriter, err error) {
	status, title := http.StatusBadGateway, "This cannot be shown"
	if missing := notFound(""); errors.As(err, &missing) {
		status, title = http.StatusNotFound, "Not found"
	}
	write(w, status, page.Failed(s.frame(), title, err.Error()))
}

// write writes a document, as a whole or not at all.
func write(w http.ResponseWriter, status int, p *page.Page) {
	if p == nil { // what it shows went while it was drawn
		http.Error(w, "What this page shows is gone.", http.StatusNotFound)
		return
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		http.Error(w, "The page cannot be drawn.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the connection alone can fail
}

// refresh is the time after which a stream looks at the clock: ages change by the minute.
const refresh = 30 * time.Second

// stream sends the fragments that change, until the browser or the command ends.
func (s *server) stream(w http.ResponseWriter, r *http.Request, open func(*http.Request) (view, error)) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, fmt.Sprintf("There are %d streams already: close other tabs of this page.", limits.PageStreams), http.StatusServiceUnavailable)
		return
	}
	out := &events{w: w, control: http.NewResponseController(w)}
	_ = out.control.SetReadDeadline(time.Time{}) // the request was read; its end is noticed by a read that waits
	v, err := open(r)
	if err != nil || v.subscribe == nil {
		_ = out.send("gone", []byte("{}"))
		return
	}
	if v.release != nil {
		defer v.release()
	}
	s.follow(r.Context(), out, v, digests(r))
}

func (s *server) follow(ctx context.Context, out *events, v view, known map[string]string) {
	changed, end := v.subscribe()
	defer end()
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for err := out.start(); err == nil; {
		begin := time.Now()
		p := v.draw(s.frame())
		if p == nil {
			_ = out.send("gone", []byte("{}"))
			return
		}
		if err = out.changes(p, known); err != nil {
			return
		}
		// A page that takes long to draw is drawn less often, so that streams never take a processor for themselves.
		pause := time.NewTimer(max(limits.PageInterval, 4*time.Since(begin)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// digests of the fragments that the browser has, as have=ID:DIGEST.
func digests(r *http.Request) map[string]string {
	known := map[string]string{}
	for _, part := range r.URL.Query()["have"] {
		if id, digest, ok := strings.Cut(part, ":"); ok {
			known[id] = digest
		}
	}
	return known
}

// events writes server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	started bool
}

func (e *events) start() error {
	if e.started {
		return nil
	}
	e.started = true
	e.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	e.w.WriteHeader(http.StatusOK)
	return e.control.Flush()
}

// changes sends the fragments that are not known, or a comment which shows that the connection stands.
func (e *events) changes(p *page.Page, known map[string]string) error {
	fragments, err := p.Changed(known)
	if err != nil {
		return err
	}
	for _, f := range fragments {
		text, err := json.Marshal(f)
		if err != nil {
			return err
		}
		if err := e.send("fragment", text); err != nil {
			return err
		}
		known[f.ID] = f.Digest
	}
	if len(fragments) > 0 {
		return nil
	}
	return e.write([]byte(": nothing new\n\n"))
}

func (e *events) send(name string, data []byte) error {
	if err := e.start(); err != nil {
		return err
	}
	return e.write(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data))
}

func (e *events) write(text []byte) error {
	if err := e.control.SetWriteDeadline(time.Now().Add(limits.PageWriteTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.control.Flush()
}

// bounded is a listener with so many connections at a time.
type bounded struct {
	net.Listener
	places chan struct{}
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	b.places <- struct{}{}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return &boundedConn{Conn: conn, places: b.places}, nil
}

type boundedConn struct {
	net.Conn
	places chan struct{}
	once   sync.Once
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	c.once.Do(func() { <-c.places })
	return c.Conn.Close()
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

// causePatience is for how long a page waits for the cause; later it comes by the stream.
const causePatience = 2 * time.Second

// one is the page of one package.
func (s *server) one(r *http.Request) (view, error) {
	t := targetOf(r)
	pkg := s.board.Package(t)
	if pkg == nil {
		return view{}, notFound(fmt.Sprintf("There is no %s, as far as you may read.", t))
	}
	detail, err := s.details.Open(t, pkg.GetUID())
	if err != nil {
		return view{}, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), limits.PageReadTimeout)
	defer cancel()
	detail.Await(ctx, causePatience)
	if o, known := detail.Observed(); !known || o.State.Target.Name == "" {
		detail.Release()
		return view{}, errors.New(cmp.Or(o.Note, t.String()+" was not read in time: reload the page, or look at the API server: kubectl get --raw '/readyz?verbose'"))
	}
	return view{
		draw: func(f page.Frame) *page.Page {
			o, _ := detail.Observed()
			if o.Gone {
				return nil
			}
			return page.PackageOf(f, o, s.board.Graph())
		},
		subscribe: both(detail.Subscribe, s.board.Subscribe), release: detail.Release,
	}, nil
}

// both joins two subscriptions.
func both(a, b func() (<-chan struct{}, func())) func() (<-chan struct{}, func()) {
	return func() (<-chan struct{}, func()) {
		joined, stop := make(chan struct{}, 1), make(chan struct{})
		first, endFirst := a()
		second, endSecond := b()
		go func() {
			for {
				select {
				case <-first:
				case <-second:
				case <-stop:
					return
				}
				select {
				case joined <- struct{}{}:
				default:
				}
			}
		}()
		return joined, func() {
			close(stop)
			endFirst()
			endSecond()
		}
	}
}

// diff compares two revisions of a package.
func (s *server) diff(r *http.Request) (view, error) {
	t := targetOf(r)
	if s.board.Package(t) == nil {
		return view{}, notFound(fmt.Sprintf("There is no %s, as far as you may read.", t))
	}
	of := *s.cluster
	of.Namespace = t.Namespace
	rollout, err := of.Rollout(r.Context(), cluster.Name{Scope: t.Scope, Name: t.Name})
	if err != nil {
		return view{}, err
	}
	var revisions [2]corev1alpha1.GenericObjectSet
	var objects [2][]objectdiff.Object
	for i, name := range []string{"from", "to"} {
		number, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
		if err != nil {
			return view{}, notFound("The address names no two revisions, as ?from=1&to=2.")
		}
		if revisions[i], err = rollout.Revision(number); err != nil {
			return view{}, notFound(err.Error())
		}
		if objects[i], err = of.ComparableObjects(r.Context(), revisions[i]); err != nil {
			return view{}, err
		}
	}
	c := cluster.Compare(revisions[0], revisions[1], objects[0], objects[1])
	return view{draw: func(f page.Frame) *page.Page { return page.DiffOf(f, t, c) }}, nil
}

// plan is what a version or a revision of a package would do.
func (s *server) plan(r *http.Request) (view, error) {
	t, values := targetOf(r), r.URL.Query()
	pkg := s.board.Package(t)
	if pkg == nil {
		return view{}, notFound(fmt.Sprintf("There is no %s, as far as you may read.", t))
	}
	select {
	case s.plans <- struct{}{}:
		defer func() { <-s.plans }()
	case <-r.Context().Done():
		return view{}, fmt.Errorf("%d plans are being made already: reload this page in a moment", limits.PagePlans)
	}
	of := *s.cluster
	of.Namespace = t.Namespace
	n := cluster.Name{Scope: t.Scope, Name: t.Name}
	shown := page.Plan{Target: t, What: "version " + values.Get("version"), Command: "kubectl package plan " + t.Flags() + " --version " + values.Get("version"), Generation: pkg.GetGeneration()}
	var made *dryrun.Plan
	var err error
	if number, parseErr := strconv.ParseInt(values.Get("revision"), 10, 64); parseErr == nil {
		shown.What, shown.Command = fmt.Sprintf("revision %d", number), fmt.Sprintf("kubectl package plan %s --revision %d", t.Flags(), number)
		made, shown.Revision, err = planOfRevision(r.Context(), &of, n, number)
	} else if _, invalid := semver.StrictNewVersion(values.Get("version")); invalid != nil {
		return view{}, notFound("The address names neither a version nor a revision, as ?version=1.2.3.")
	} else if made, err = planning.OfVersion(r.Context(), s.quiet, &of, n, values.Get("version")); err == nil {
		shown.Version, shown.Digest = made.To.Version, made.To.Digest
	}
	if err != nil {
		return view{}, of.Explain("cannot plan "+t.String(), err)
	}
	shown.Text, shown.Feasible = planning.Text(made, terminal.Plain()), made.Outcome == dryrun.OutcomeChanges
	return view{draw: func(f page.Frame) *page.Page { return page.PlanOf(f, shown) }}, nil
}

func planOfRevision(ctx context.Context, cl *cluster.Cluster, n cluster.Name, number int64) (*dryrun.Plan, *page.Revision, error) {
	rollout, err := cl.Rollout(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	set, err := rollout.Revision(number)
	if err != nil {
		return nil, nil, notFound(err.Error())
	}
	made, err := planning.OfRevision(ctx, cl, rollout, set, set.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation])
	awaiting := set.GetName() == rollout.Deployment.ObjectDeploymentStatus().WaitingRevision
	return made, &page.Revision{Number: number, UID: string(set.GetUID()), Awaiting: awaiting}, err
}

// graph is the drawing around one package, or of namespaces.
func (s *server) graph(r *http.Request) (view, error) {
	around := r.URL.Query().Get("package")
	return view{
		draw:      func(f page.Frame) *page.Page { return page.GraphOf(f, s.board.Graph(), around) },
		subscribe: s.board.Subscribe,
	}, nil
}

// catalogue is the page of what is offered, of packages that are not at their newest version, and of repositories.
func (s *server) catalogue(r *http.Request) (view, error) {
	s.offers.Refresh(r.Context(), causePatience)
	q := page.CatalogueQueryOf(r.URL.Query())
	return view{
		draw:      func(f page.Frame) *page.Page { return page.CatalogueOf(f, s.offers.Shown(), s.board.Rows(), q) },
		subscribe: both(s.board.Subscribe, s.offers.Subscribe),
	}, nil
}

// offer is the page of one package that is offered, with its versions.
func (s *server) offer(r *http.Request) (view, error) {
	q := page.OfferQueryOf(r.URL.Query())
	if q.Name == "" {
		return view{}, notFound("The address names no package, as ?name=shop.example.com.")
	}
	if q.Namespace != "" && len(validation.IsDNS1123Label(q.Namespace)) > 0 {
		return view{}, notFound("The address has a namespace that none can be called, other than in ?namespace=shop.") // commands of the page have it
	}
	o, err := s.offers.Offered(r.Context(), q)
	if err != nil {
		return view{}, err
	}
	return view{draw: func(f page.Frame) *page.Page { return page.OfferedOf(f, o, s.board.Rows(), s.offers.Shown().Newer, q) }}, nil
}

// targetOf is the package that the path of a request names.
func targetOf(r *http.Request) progress.Target {
	namespace := r.PathValue("namespace")
	return progress.Target{Scope: corev1alpha1.ScopeOf(namespace), Namespace: namespace, Name: r.PathValue("name")}
}
