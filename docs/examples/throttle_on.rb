# A task of the gem maintenance_tasks that asks Sluice before each element, for an application that writes around
# Sluice; SLUICE_CHECK is http://127.0.0.1:9307/throttler/check?app=backfill.
#
# A task whose writes come through Sluice needs none of this: let a rule match its name, for instance by the tag
# that Rails' query logs add.
require "net/http"

module AsksSluice
  CHECK = URI(ENV.fetch("SLUICE_CHECK"))

  # Anything but 200 is a no, and so is no answer.
  def self.no?
    Net::HTTP.start(CHECK.host, CHECK.port, open_timeout: 2, read_timeout: 2) do |http|
      !http.head(CHECK.request_uri).is_a?(Net::HTTPOK)
    end
  rescue SystemCallError, IOError, Timeout::Error
    true
  end
end

module Maintenance
  class BackfillTask < MaintenanceTasks::Task
    throttle_on(backoff: 5.seconds) { AsksSluice.no? }

    def collection
      Order.where(region: nil).in_batches(of: 500)
    end

    def process(batch)
      batch.update_all(region: "unknown")
    end
  end
end
