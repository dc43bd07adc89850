// Package wire is the line protocol of the drivers; tests/interop/java/Wire.java describes it.
package wire

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limit is for whatever a command waits for, however slow the machine.
const Limit = 60 * time.Second

// Line is one answer or event.
type Line map[string]any

// Handlers are the commands by their verbs.
type Handlers map[string]func(Args) error

var output sync.Mutex

// Emit prints one line.
func Emit(line Line) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

// Serve obeys standard input until it ends.
func Serve(handlers Handlers) {
	input := bufio.NewReader(os.Stdin)
	for {
		line, err := input.ReadString('\n')
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		err = fmt.Errorf("no such command: %s", verb)
		if handler := handlers[verb]; handler != nil {
			err = handler(parse(rest))
		}
		if err != nil {
			Emit(Line{"error": err.Error()})
		} else if verb != "send" { // `flush` tells how it ended
			Emit(Line{"done": true})
		}
	}
}

// Args are the key=value words of a command; a key may come more than once.
type Args struct{ words [][2]string }

func parse(line string) Args {
	var args Args
	for _, word := range strings.Fields(line) {
		if key, value, found := strings.Cut(word, "="); found {
			args.words = append(args.words, [2]string{key, value})
		}
	}
	return args
}

// Get is the first value of the key, or the fallback.
func (a Args) Get(key, fallback string) string {
	for _, word := range a.words {
		if word[0] == key {
			return word[1]
		}
	}
	return fallback
}

// Need is the first value of the key; a command without it is a fault of the test.
func (a Args) Need(key string) string {
	for _, word := range a.words {
		if word[0] == key {
			return word[1]
		}
	}
	panic("the command lacks " + key + "=")
}

// Number is the first value of the key as a number.
func (a Args) Number(key string, fallback int64) int64 {
	text := a.Get(key, "")
	if text == "" {
		return fallback
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return number
}

// Bytes are those of the key's hex value; nil without the key, not nil when they are none.
func (a Args) Bytes(key string) []byte {
	for _, word := range a.words {
		if word[0] == key {
			return unhex(word[1])
		}
	}
	return nil
}

// Time is that of ts=, zero without it.
func (a Args) Time() time.Time {
	if at := a.Number("ts", -1); at >= 0 {
		return time.UnixMilli(at)
	}
	return time.Time{}
}

// Header is a record's; its value may be nil.
type Header struct {
	Name  string
	Value []byte
}

// Headers are those of the words h=hexname:hexvalue|-.
func (a Args) Headers() []Header {
	var headers []Header
	for _, word := range a.words {
		if word[0] != "h" {
			continue
		}
		name, value, _ := strings.Cut(word[1], ":")
		header := Header{Name: string(unhex(name))}
		if value != "-" {
			header.Value = unhex(value)
		}
		headers = append(headers, header)
	}
	return headers
}

// Config gives the values of the words c.NAME one by one; a name that is not taken is an error.
func (a Args) Config(take map[string]func(value string)) error {
	for _, word := range a.words {
		name, found := strings.CutPrefix(word[0], "c.")
		if !found {
			continue
		}
		if take[name] == nil {
			return fmt.Errorf("this driver does not set %s", name)
		}
		take[name](word[1])
	}
	return nil
}

// Milliseconds reads a configuration's value.
func Milliseconds(value string) time.Duration {
	number, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		panic(err)
	}
	return time.Duration(number) * time.Millisecond
}

func unhex(text string) []byte {
	bytes, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return bytes
}

// Record is what a reader tells of one.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Timestamp time.Time
	// TimestampType is Kafka's word, or nil where the client does not tell.
	TimestampType any
	Key, Value    []byte
	Headers       []Header
}

// Line is the record as an answer.
func (r Record) Line() Line {
	headers := make([][2]any, 0, len(r.Headers))
	for _, header := range r.Headers {
		headers = append(headers, [2]any{hex.EncodeToString([]byte(header.Name)), hexed(header.Value)})
	}
	return Line{"topic": r.Topic, "partition": r.Partition, "offset": r.Offset,
		"timestamp": r.Timestamp.UnixMilli(), "timestampType": r.TimestampType,
		"key": hexed(r.Key), "value": hexed(r.Value), "headers": headers}
}

// Event is the record as what came to a member of a group.
func (r Record) Event(member string) Line {
	line := r.Line()
	line["event"], line["member"] = "record", member
	return line
}

func hexed(bytes []byte) any {
	if bytes == nil {
		return nil
	}
	return hex.EncodeToString(bytes)
}

// Assigned is the set of partitions that a member has, for any thread.
type Assigned struct {
	mutex   sync.Mutex
	names   map[string]bool
	failure error
}

// Add notes partitions as gained.
func (a *Assigned) Add(partitions map[string][]int32) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.names == nil {
		a.names = map[string]bool{}
	}
	for topic, numbers := range partitions {
		for _, number := range numbers {
			a.names[fmt.Sprintf("%s-%d", topic, number)] = true
		}
	}
}

// Remove notes partitions as lost.
func (a *Assigned) Remove(partitions map[string][]int32) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for topic, numbers := range partitions {
		for _, number := range numbers {
			delete(a.names, fmt.Sprintf("%s-%d", topic, number))
		}
	}
}

// Clear notes that all is lost.
func (a *Assigned) Clear() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.names = nil
}

// Fail notes what ended the member.
func (a *Assigned) Fail(err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.failure = err
}

// Failure is what ended the member.
func (a *Assigned) Failure() error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.failure
}

// Tell answers `assignment`.
func (a *Assigned) Tell() error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	names := make([]string, 0, len(a.names))
	for name := range a.names {
		names = append(names, name)
	}
	sort.Strings(names)
	Emit(Line{"partitions": names})
	return a.failure
}
