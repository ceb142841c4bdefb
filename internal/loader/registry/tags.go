package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"lockstep.run/lockstep/internal/limits"
)

const tagsPerPage = 1000 // tags that a registry lists per request

// Tags returns the tags of the repository that a reference names. Its error is a *PullError, or
// wraps the cause of ctx.
func (p *Puller) Tags(ctx context.Context, ref string) ([]string, error) {
	parsed, err := p.parse(ref)
	if err != nil {
		return nil, err
	}

	var tags []string
	err = p.withSession(ctx, ref, parsed.Context(), func(ctx context.Context, s *session) error {
		tags, err = s.tags(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}

	return tags, nil
}

// tags reads all pages of the list.
func (s *session) tags(ctx context.Context) ([]string, error) {
	var tags []string
	for next := fmt.Sprintf("/v2/%s/tags/list?n=%d", s.repo.RepositoryStr(), tagsPerPage); next != ""; {
		page, following, err := s.tagsPage(ctx, next)
		if err != nil {
			return nil, err
		}
		tags = append(tags, page...)
		if len(tags) > limits.Tags {
			return nil, failf(ReasonLimit, manyTags, "the repository has more than %d tags", limits.Tags)
		}
		if len(page) == 0 || following == next {
			break
		}
		next = following
	}

	return tags, nil
}

// manyTags is the remedy if a repository has too many tags.
const manyTags = "Name the tag instead of selecting one, or remove tags."

// tagsPage returns one page and the address of the next one, or an empty address at the end.
func (s *session) tagsPage(ctx context.Context, pathAndQuery string) (tags []string, next string, err error) {
	resp, err := s.do(withBodyLimit(ctx, limits.ImageManifestBytes), http.MethodGet, pathAndQuery, "")
	if err != nil {
		return nil, "", err
	}

	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, "", err
	}

	var page struct {
		Tags []string `json:"tags"`
	}
	if err := decode("the list of tags", data, &page); err != nil {
		if failed, ok := errors.AsType[*failure](err); ok && failed.reason == ReasonLimit {
			failed.remedy = manyTags
		}
		return nil, "", err
	}

	next, err = nextPage(resp)
	return page.Tags, next, err
}

// nextPage returns path and query of the next page, on the same registry, from a Link header (RFC
// 8288).
func nextPage(resp *http.Response) (string, error) {
	link := resp.Header.Get("Link")
	target, ok := strings.CutPrefix(link, "<")
	if !ok {
		return "", nil
	}

	target, _, ok = strings.Cut(target, ">")
	next, err := url.Parse(target)
	if !ok || err != nil {
		return "", failf(ReasonInvalidImage, "", "the list has a link that cannot be read")
	}

	next = resp.Request.URL.ResolveReference(next)
	if next.Scheme != resp.Request.URL.Scheme || next.Host != resp.Request.URL.Host {
		return "", failf(ReasonForbiddenAddress, "", "the list goes on at another host, %s", next.Host)
	}

	return next.RequestURI(), nil
}
