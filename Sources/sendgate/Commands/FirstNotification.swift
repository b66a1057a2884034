/// The commands that lead from an empty gateway in development to a first notification on its way: a person, their
/// phone, and a send to it. Printed where a newcomer looks, and run by a test as they are printed.
enum FirstNotification {
    /// - Parameters:
    ///   - program: What the reader typed to start this program.
    ///   - socket: The one that may do everything.
    static func commands(program: String, socket: String) -> String {
        """
        curl -sS --unix-socket \(socket) -X PUT http://gate/v1/recipients/u_42 \\
          --json '{"region": "DE", "region_source": "kyc", "locale": "nb", "privacy": "generic",
          "time_zone": "Europe/Berlin", "age": "adult", "push_enabled": true}'
        curl -sS --unix-socket \(socket) -X PUT http://gate/v1/recipients/u_42/devices/d_1 \\
          --json '{"platform": "ios", "app": "no.getdrop.app", "token": "00aa", "region": "DE",
          "time_zone": "Europe/Berlin", "os_permission": "granted", "critical_alerts": false}'
        \(program) send --socket \(socket) --id first --type security.new_login --user u_42 \\
          --params '{"login_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10", "device_name": "Pixel 9",
          "at": "2026-11-21T05:00:00Z"}'
        """
    }
}
