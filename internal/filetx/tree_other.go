//go:build !linux

package filetx

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// errLinux is what everything is elsewhere.
var errLinux = fmt.Errorf("change files: %w", errors.ErrUnsupported)

// Tree is an open directory; only Linux has it.
type Tree struct{}

// Fill writes the bytes that a path is to hold.
type Fill func(ctx context.Context, path string, w io.Writer) error

// Open refuses.
func Open(string, string) (*Tree, error) { return nil, errLinux }

// Close refuses.
func (*Tree) Close() error { return errLinux }

// State refuses.
func (*Tree) State(string) (State, error) { return State{}, errLinux }

// Copy refuses.
func (*Tree) Copy(string, io.Writer) (string, error) { return "", errLinux }

// Walk refuses.
func (*Tree) Walk(string, func(string, State) error) error { return errLinux }

// Apply refuses.
func (*Tree) Apply(context.Context, string, []Change, Fill) error { return errLinux }

// Recover refuses.
func Recover(string) (Recovery, error) { return Recovery{}, errLinux }
