package fetch

import "context"

func (f *Fetcher) git(_ context.Context, _ Source, _ string) (*Result, error) {
	return nil, permanent("", "git cannot be fetched from yet")
}
