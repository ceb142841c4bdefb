package fetch

import "context"

func (f *Fetcher) http(_ context.Context, _ Source, _ string) (*Result, error) {
	return nil, permanent("", "web servers cannot be fetched from yet")
}

func (f *Fetcher) git(_ context.Context, _ Source, _ string) (*Result, error) {
	return nil, permanent("", "git cannot be fetched from yet")
}
