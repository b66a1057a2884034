import Foundation
import Glibc
import Testing

extension EndToEnd {
    /// A gateway that a service manager started: what it says, and what a restart costs its clients.
    @Suite struct ServiceTests {
        /// A production gateway behind two sockets of the manager's, with the delivery layer's as its hop.
        struct Managed {
            let scratch: Scratch
            let manager: ServiceManager
            let gate: String
            let pages: String

            init(watchdogSeconds: Int = 30) throws {
                scratch = try Scratch(isShared: true)
                let production = try Production(in: scratch, listener: "  - systemd: gate")
                let configuration = try production.write(
                    production.template + "public_listen: \"systemd:pages\"\n")
                (gate, pages) = (scratch.path("gate.sock"), scratch.path("pages.sock"))
                let units = scratch.path("units")
                try FileManager.default.createDirectory(atPath: units, withIntermediateDirectories: false)
                for (name, path) in [("gate", gate), ("pages", pages)] {
                    try scratch.write(
                        "units/sendgate-\(name).socket",
                        """
                        [Socket]
                        ListenStream=\(path)
                        FileDescriptorName=\(name)
                        SocketMode=0666
                        Service=sendgate.service
                        Backlog=1024

                        """)
                }
                try scratch.write(
                    "units/sendgate.service",
                    """
                    [Unit]
                    Requires=sendgate-gate.socket sendgate-pages.socket
                    [Service]
                    Type=notify
                    WatchdogSec=\(watchdogSeconds)
                    Restart=on-failure
                    ExecStart=\(Machine.sendgate) serve --config \(configuration)
                    ExecReload=/bin/kill -HUP $MAINPID

                    """)
                manager = try ServiceManager(in: scratch, run: scratch.path("manager"), units: units)
            }
        }

        @Test func `a service manager is told of the proof, of readiness, of each reload and of the stop`()
            throws
        {
            let managed = try Managed(watchdogSeconds: 2)
            try managed.manager("start sendgate.service")
            let ready = try managed.manager("show sendgate.service")
            let notices = try #require(ready.notices)
            #expect(
                notices.contains { $0.hasPrefix("STATUS=proving ") && $0.contains("EXTEND_TIMEOUT_USEC=") })
            #expect(ready.text?.hasPrefix("ready, under `") == true, "\(ready)")
            #expect(notices.count { $0.hasPrefix("READY=1") } == 1, "\(notices)")
            let place = { (text: String) in notices.firstIndex { $0.hasPrefix(text) } ?? .max }
            #expect(place("STATUS=proving ") < place("READY=1") && place("READY=1") < .max)

            try managed.manager("reload sendgate.service")
            let reloaded = try managed.manager.wait(for: "sendgate.service") {
                $0.notices?.last { !$0.hasPrefix("WATCHDOG") }?.hasPrefix("READY=1") == true
            }
            #expect(
                reloaded.notices?.contains { $0.hasPrefix("RELOADING=1\nMONOTONIC_USEC=") } == true,
                "\(reloaded)")

            // Watched: it says so by itself, and what stands still is ended and started anew.
            _ = try managed.manager.wait(for: "sendgate.service") {
                $0.notices?.contains("WATCHDOG=1") == true
            }
            let process = try #require(reloaded.pid)
            kill(process, SIGSTOP)
            let restarted = try managed.manager.wait(for: "sendgate.service") {
                $0.ready == true && $0.pid != process
            }
            #expect(restarted.restarts == 1 && restarted.notices?.contains("the watchdog bit") == true)

            try managed.manager("stop sendgate.service")
            let stopped = try managed.manager("show sendgate.service")
            #expect(stopped.notices?.last == "STOPPING=1\nSTATUS=draining", "\(stopped)")
            try managed.manager.quit()
        }

        @Test func `no request fails over three restarts, on new connections and on kept ones`() throws {
            let managed = try Managed()
            try managed.manager("start sendgate.service")
            let load = try SteadyLoad(
                managed.gate, in: managed.scratch, as: (Production.producerID, Production.producerID))
            for _ in 1...3 {
                try load.waitForMore(50)
                try managed.manager("restart sendgate.service")
            }
            try load.waitForMore(50)
            let outcome = try load.finish()
            // Nobody is registered, so every send is decided, and refused.
            #expect(outcome.failures.isEmpty, "\(outcome)")
            #expect(Set(outcome.statuses.keys) == ["403"], "\(outcome)")
            #expect(outcome.statuses.values.reduce(0, +) > 100, "\(outcome)")
            // The pages' socket came with it.
            let page = try Production.curl(managed.pages, as: [], "/u/x", in: managed.scratch)
            #expect(page.status == 404, "\(page)")
            try managed.manager.quit()
        }

        @Test func `a connection starts a gateway that is not running, and it answers that one`() throws {
            let managed = try Managed()
            try managed.manager("start sendgate-gate.socket")
            try managed.manager("start sendgate-pages.socket")
            let answer = try Production.curl(
                managed.gate, as: Production.asProducer, "/healthz", in: managed.scratch)
            #expect(answer.status == 200, "\(answer)")
            try managed.manager.quit()
        }
    }
}
