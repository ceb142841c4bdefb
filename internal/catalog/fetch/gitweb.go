package fetch

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// gitWeb is an http server (https://git-scm.com/docs/http-protocol).
type gitWeb struct {
	*client
	base *url.URL
}

// gitService is the command, and the name of the service over http.
const gitService = "git-upload-pack"

func (g *gitWeb) advertise(ctx context.Context) (io.ReadCloser, error) {
	const refs = "/info/refs"
	u := *g.base
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/")+refs, ""
	query := u.Query()
	query.Set("service", gitService)
	u.RawQuery = query.Encode()
	resp, err := g.send(ctx, http.MethodGet, &u, nil)
	if err != nil {
		return nil, err
	}
	if kind := resp.Header.Get("Content-Type"); kind != "application/x-"+gitService+"-advertisement" {
		_ = resp.Body.Close()
		return nil, permanent("Check the URL.", "there is no git repository: the server answered with the type %.100q", kind)
	}

	// A server that redirected this request expects the next ones at the new address.
	at := *resp.Request.URL
	if p, ok := strings.CutSuffix(at.Path, refs); ok {
		at.Path, at.RawPath, at.RawQuery = p, "", g.base.RawQuery
		g.base = &at
	}

	return resp.Body, nil
}

func (g *gitWeb) request(ctx context.Context, message []byte) (io.ReadCloser, error) {
	u := *g.base
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/")+"/"+gitService, ""
	resp, err := g.send(ctx, http.MethodPost, &u, message)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// send sends a request and returns an answer with the status 200.
func (g *gitWeb) send(ctx context.Context, method string, u *url.URL, message []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(message))
	if err != nil {
		return nil, err
	}

	r.Header.Set("Git-Protocol", "version=2")
	r.Header.Set("User-Agent", "git/"+g.opts.UserAgent) // some servers answer only clients with this prefix
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-"+gitService+"-request")
		r.Header.Set("Accept", "application/x-"+gitService+"-result")
	}

	resp, err := g.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, statusError(resp)
	}

	return resp, nil
}
