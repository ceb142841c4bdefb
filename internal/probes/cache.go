package probes

import (
	"runtime"
	"sync"
	"weak"
)

// programs shares compiled expressions between all Sets in use, and keeps none alive.
type programs[T any] struct {
	mu     sync.Mutex
	byText map[string]weak.Pointer[T]
}

// get returns the shared program of text, or compiles it. Errors are not cached.
func (p *programs[T]) get(text string, compile func(string) (*T, error)) (*T, error) {
	if found := p.find(text); found != nil {
		return found, nil
	}
	made, err := compile(text)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// Another goroutine may have been faster: then its program is the one.
	if found := p.byText[text].Value(); found != nil {
		return found, nil
	}
	if p.byText == nil {
		p.byText = map[string]weak.Pointer[T]{}
	}
	p.byText[text] = weak.Make(made)
	runtime.AddCleanup(made, p.drop, text)
	return made, nil
}

func (p *programs[T]) find(text string) *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byText[text].Value()
}

// drop forgets a program that was collected, unless a new one took its place.
func (p *programs[T]) drop(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byText[text].Value() == nil {
		delete(p.byText, text)
	}
}
