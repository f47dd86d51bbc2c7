package child

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// Whatever a program says it is, the supervisor's word takes its place.
func TestVouch(t *testing.T) {
	d := &door{id: events.NewID(), token: "secret"}
	line, err := d.vouch([]byte(`CONNECT {"verbose":false,"user":"client","pass":"x","auth_token":"y","jwt":"z","nkey":"n","sig":"s","headers":true}` + "\r\n"))
	require.NoError(t, err)
	require.JSONEq(t, `{"verbose":false,"headers":true,"user":"`+d.id+`/rpc","pass":"secret"}`, string(line[len("CONNECT "):]))
	require.Equal(t, "\r\n", string(line[len(line)-2:]))
	for _, bad := range []string{"PING\r\n", "CONNECT\r\n", "CONNECT null\r\n", "CONNECT []\r\n", `CONNECT {"user":"a","user":"b"}` + "\r\n", "\r\n"} {
		_, err := d.vouch([]byte(bad))
		require.Error(t, err, bad)
	}
}
