package probes

import (
	"runtime"
	"sync"
	"weak"
)

// programs shares compiled expressions between all Sets in use. The references are weak: a program
// lives as long as a Set uses it.
type programs[T any] struct {
	mu     sync.Mutex
	byText map[string]weak.Pointer[T]
}

// get returns the shared program of text, compiling it if needed. It does not cache errors.
func (p *programs[T]) get(text string, compile func(string) (*T, error)) (*T, error) {
	p.mu.Lock()
	found := p.byText[text].Value()
	p.mu.Unlock()
	if found != nil {
		return found, nil
	}

	made, err := compile(text)
	if err != nil {
		return nil, err
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.byText[text].Value(); found != nil {
		return found, nil // another goroutine compiled it in the meantime
	}
	if p.byText == nil {
		p.byText = map[string]weak.Pointer[T]{}
	}

	p.byText[text] = weak.Make(made)
	// Otherwise the map would keep the text of every expression that was ever compiled.
	runtime.AddCleanup(made, p.drop, text)
	return made, nil
}

// drop forgets a collected program, unless another one has replaced it.
func (p *programs[T]) drop(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byText[text].Value() == nil {
		delete(p.byText, text)
	}
}
